"""Actuators: from controls to forces on joints."""

"""Robots in motion: model, dynamics, actuators, contact, simulation, parameters, networks within the physics."""

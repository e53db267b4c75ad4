"""Recorded robots through the command line, as a user would: DFKI double pendulum, Qube, EMPS."""

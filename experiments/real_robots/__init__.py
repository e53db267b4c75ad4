"""Recorded robots identified by the command line: DFKI double pendulum, Qube, EMPS."""

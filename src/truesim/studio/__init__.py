"""Studio: the robot in a browser, its motions on a timeline, and an identification step by step."""

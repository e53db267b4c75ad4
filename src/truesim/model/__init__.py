"""What a robot is: bodies, joints, actuators, sensors, geoms, their names and the tree they form."""

"""The whole loop: identify a robot, randomize around its posterior, train, play on the robot, measure the gap."""

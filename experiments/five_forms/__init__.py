"""One recording in five forms, each from file to a robot that replays in MuJoCo."""

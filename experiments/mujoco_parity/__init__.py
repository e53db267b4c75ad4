"""Motion of robot files against MuJoCo's, scene by scene."""

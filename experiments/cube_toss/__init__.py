"""Contact parameters from real tosses of a cube, compared with MuJoCo."""

"""Synthetic problems with known truth, solved by truesim and by MuJoCo's identification toolbox."""

"""Link lengths of pendulums with spherical joints, as in the Real2Sim paper: point estimates, mixtures, a ridge."""

"""Protocol of the Kinova's recordings: runs that are not fitted to, and the band of errors."""

HELD_OUT = ("excitation_2.csv", "sweep_fast_2.csv")
BAND = 5.0
"""Band of the errors [Hz]."""

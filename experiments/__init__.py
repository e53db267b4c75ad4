"""Results of papers and of recorded cases, reproduced; nothing imports them."""

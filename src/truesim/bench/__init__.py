"""Speed, compile time and memory of truesim and its peers, measured in one run."""

"""Five synthetic problems with known answers, and what this library and the nearest peer make of them."""

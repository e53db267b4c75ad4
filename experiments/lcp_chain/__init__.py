"""A ball hits a hanging chain: the masses of its links from the motion that follows."""

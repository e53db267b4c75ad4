# Types of the libraries that `libraries.py` loads on first use.
import cmaes as cmaes
import optax as optax
import polars as polars
import scipy as scipy

LIBRARIES: tuple[str, ...]

"""Designed motions of a seven-joint arm beside chirps."""

"""Scenes: shapes of a robot as triangles, motions as poses of its bodies, pictures, and replays without a server."""

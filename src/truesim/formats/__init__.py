"""Robot files in and out: MJCF, URDF, and the sidecar for what they cannot hold."""

"""A hobby servo that swings a mass, identified at two gains of its firmware and tested at a third."""

"""Interior-point solver of rigid contact: cones, central path, predictor and corrector."""

"""Design: a plan that the learner chooses and the estimator judges."""

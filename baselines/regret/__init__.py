"""The regret of a run: objectives in closed form, their optima, the count."""

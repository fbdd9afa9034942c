"""LocalUpdate: Algorithms 1 and 2 of Charles and Konecny (2020)."""

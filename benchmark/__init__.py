"""Benches that play public data sets through the product's own Add and Search."""

"""One utility an item: edges and the factored prior over items."""

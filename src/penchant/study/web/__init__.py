"""The web side of a study: routes, pages, safety."""

"""The page and its HTTP interface: a thin surface over the engine, served by Flask."""

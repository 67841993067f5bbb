"""An index that several machines build together; nothing of it is loaded unless it is chosen."""

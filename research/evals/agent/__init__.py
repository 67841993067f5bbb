"""What an agent does with the tools over several steps, written out to be read."""

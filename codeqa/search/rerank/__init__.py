"""Reading the best hits again, more closely: built in, by a checkpoint, or by a provider's API."""

"""What a message is for, and what is to be done about it."""

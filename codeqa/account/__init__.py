"""What is known and stored of a user: facts that they told, what is stored, and its deletion."""

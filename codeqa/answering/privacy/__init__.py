"""What is stored of a user: told, deleted, and looked for in the bytes that are left."""

"""Read a repository: git, the walk over its files, ignore rules, roles, secrets."""

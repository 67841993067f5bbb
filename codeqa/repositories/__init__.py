"""The repositories that have an index here: found, listed and opened, their files as they are now,
one as it was at a commit, several asked as one."""

from codeqa.repositories.known import (
    RepositoryReport,
    clone_location,
    clones_folder,
    find_repository,
    is_clone,
    last_used,
    open_location,
    remove_repository,
    rename_repository,
    report_on,
    report_repositories,
    sync_clone,
    take_clone,
)

__all__ = [
    "RepositoryReport",
    "clone_location",
    "clones_folder",
    "find_repository",
    "is_clone",
    "last_used",
    "open_location",
    "remove_repository",
    "rename_repository",
    "report_on",
    "report_repositories",
    "sync_clone",
    "take_clone",
]

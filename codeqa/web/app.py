"""The application factory."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from flask import Flask

from codeqa.engine import Engine
from codeqa.settings import Settings, load_settings
from codeqa.web import (
    conversations_api,
    endpoints,
    errors,
    files_api,
    index_api,
    models_api,
    openai_api,
    pages,
    privacy_api,
    questions_api,
    repositories_api,
    search_api,
    security,
    turns_api,
)
from codeqa.web.workspace import Workspace

SESSION_DAYS = 30
ADDRESSES = (
    questions_api,
    conversations_api,
    turns_api,
    models_api,
    index_api,
    repositories_api,
    files_api,
    openai_api,
    endpoints,
    privacy_api,
    search_api,
)

PACKAGE = Path(__file__).resolve().parent


def create_app(
    settings: Settings | None = None,
    repository: Path | None = None,
    engine: Engine | None = None,
) -> Flask:
    """Make the application; nothing is opened until the first request.

    Without arguments, as gunicorn calls it, settings come from the environment and the
    repository is the last one used. Raises SettingsError when the settings would let
    other machines in without a token.
    """
    settings = settings or load_settings(repository)
    security.check_settings(settings)
    # A wheel carries templates and scripts inside this package, a checkout at its top level.
    assets = PACKAGE if (PACKAGE / "templates").is_dir() else PACKAGE.parent.parent
    app = Flask(
        "codeqa.web",
        template_folder=str(assets / "templates"),
        static_folder=str(assets / "static"),
    )
    app.config["PERMANENT_SESSION_LIFETIME"] = timedelta(days=SESSION_DAYS)
    app.extensions["codeqa"] = Workspace(settings, repository, engine)
    app.json.sort_keys = False  # type: ignore[attr-defined]
    errors.handle_errors(app)
    security.guard(app, settings)
    for module in ADDRESSES:
        module.endpoints.register(app)
    app.register_blueprint(pages.blueprint)
    return app

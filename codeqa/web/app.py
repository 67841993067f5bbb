"""The application factory."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from flask import Flask

from codeqa.settings import Settings, load_settings
from codeqa.web import (
    api,
    chat,
    completion,
    completions,
    conversations,
    errors,
    feedback,
    models,
    openapi,
    pages,
    privacy,
    security,
)
from codeqa.web.assets import assets_root
from codeqa.web.workspace import Workspace

if TYPE_CHECKING:
    from codeqa.engine import Engine

SESSION_DAYS = 30


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
    assets = assets_root()
    app = Flask(
        "codeqa.web",
        template_folder=str(assets / "templates"),
        static_folder=str(assets / "static"),
    )
    app.config["PERMANENT_SESSION_LIFETIME"] = timedelta(days=SESSION_DAYS)
    app.extensions["codeqa"] = Workspace(settings, repository, engine)
    app.json.sort_keys = False  # type: ignore[attr-defined]
    errors.register(app)
    security.register(app, settings)
    parts = (
        pages,
        chat,
        conversations,
        feedback,
        models,
        api,
        completion,
        completions,
        openapi,
        privacy,
    )
    for part in parts:
        app.register_blueprint(part.blueprint)
    return app

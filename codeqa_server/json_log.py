"""Write the log of a server as lines of JSON, for programs: `CODEQA_LOG_FORMAT=json`."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

from flask import has_request_context

from codeqa.errors import places_of
from codeqa.repository.secrets import mask_secrets
from codeqa.web.logs import request_fields


class JsonLines(logging.Formatter):
    """Format a record as a JSON object: time, level, logger and message.

    Id and user of the request are added if there is one, and the place where an exception was
    raised, without its text.
    """

    def format(self, record: logging.LogRecord) -> str:
        values = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": mask_secrets(record.getMessage()),
            **(request_fields() if has_request_context() else {}),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            values["exception"] = places_of(record.exc_info[1])
        return json.dumps(values, ensure_ascii=False)

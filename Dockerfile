# CodeQA as a container that runs as a normal user.
#
#   docker build -t codeqa .
#   docker run --rm -p 127.0.0.1:5001:5001 -e CODEQA_TOKEN=choose-one \
#       -v /path/to/repository:/repository:ro -v codeqa-data:/data codeqa
#
# The page asks for the token. The repository is only read; the index lies in /data.

FROM python:3.13-slim AS build
WORKDIR /source
COPY requirements-dev.txt constraints.txt ./
RUN grep -E "^(build|hatchling|hatch-requirements-txt)==" requirements-dev.txt > build.txt \
    && pip install --no-cache-dir -c constraints.txt -r build.txt
COPY . .
RUN python -m build --wheel --no-isolation --outdir /wheels

FROM python:3.13-slim
# git tells which files belong to a repository. The mounted one belongs to another user,
# which git refuses unless told.
RUN apt-get update \
    && apt-get install -y --no-install-recommends git \
    && rm -rf /var/lib/apt/lists/* \
    && git config --system --add safe.directory /repository
# The pinned packages first: they change less often than the wheel, and this layer is kept.
COPY requirements.lock constraints.txt /tmp/
RUN pip install --no-cache-dir --no-deps --require-hashes -r /tmp/requirements.lock
COPY --from=build /wheels /tmp/wheels
# `--build-arg EXTRA=server` adds what several processes and machines need (deploy/compose.yaml).
ARG EXTRA=""
RUN pip install --no-cache-dir --no-deps /tmp/wheels/*.whl && rm -rf /tmp/wheels \
    && if [ -n "$EXTRA" ]; then pip install --no-cache-dir -c /tmp/constraints.txt "codeqa[$EXTRA]"; fi

RUN useradd --create-home --uid 1000 codeqa \
    && mkdir /data /repository \
    && chown codeqa:codeqa /data
USER codeqa
WORKDIR /home/codeqa
ENV CODEQA_DATA=/data \
    CODEQA_HOST=0.0.0.0 \
    PYTHONUNBUFFERED=1
VOLUME ["/data"]
EXPOSE 5001

# /health needs no token and says nothing about the repository. A first index comes before it.
HEALTHCHECK --interval=30s --timeout=5s --start-period=5m --retries=3 \
    CMD ["python", "-c", "import os, urllib.request; urllib.request.urlopen('http://127.0.0.1:' + os.environ.get('CODEQA_PORT', '5001') + '/health', timeout=4)"]

# Without CODEQA_TOKEN this says so and ends: the page is open to other machines here.
ENTRYPOINT ["codeqa"]
CMD ["serve", "/repository"]

# One image for every process: web, worker, beat, prepare. No compiler, no root.
#
# The base is named by its exact version. Pin it by digest where you build, with the digest of the image
# that you checked: docker buildx imagetools inspect python:3.11.11-slim-bookworm, then
#   docker build --build-arg BASE=python:3.11.11-slim-bookworm@sha256:…

ARG BASE=python:3.11.11-slim-bookworm

FROM ${BASE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PYTHONDONTWRITEBYTECODE=1
RUN python -m venv /opt/agentsite
COPY requirements.txt requirements-diagrams.txt /tmp/
RUN /opt/agentsite/bin/pip install --require-hashes -r /tmp/requirements.txt \
    && /opt/agentsite/bin/pip install --require-hashes -r /tmp/requirements-diagrams.txt
COPY . /srv/agentsite
WORKDIR /srv/agentsite
# Collected with throw-away settings: only the list of apps and directories counts here.
RUN AGENTSITE_ENV_FILE= AGENTSITE_STATIC_FROM_FINDERS=false AGENTSITE_DATA_DIR=/tmp/data \
    /opt/agentsite/bin/python manage.py collectstatic --noinput \
    && rm -rf tests
# No process writes byte code there, so it is written once: a start compiles nothing.
RUN /opt/agentsite/bin/python -m compileall -q /srv/agentsite

FROM ${BASE}
ENV PATH=/opt/agentsite/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 \
    AGENTSITE_ENV=production AGENTSITE_ENV_FILE= AGENTSITE_DATA_DIR=/var/lib/agentsite \
    AGENTSITE_STATIC_FROM_FINDERS=false AGENTSITE_LOG_FORMAT=json
# What commands of agents run in. It needs user namespaces, which a container's default profile closes:
# docs/operations.md, "Commands in containers".
RUN apt-get update && apt-get install --yes --no-install-recommends bubblewrap git \
    && rm -rf /var/lib/apt/lists/*
RUN useradd --system --uid 10001 --home-dir /var/lib/agentsite --create-home agentsite
COPY --from=build /opt/agentsite /opt/agentsite
COPY --from=build /srv/agentsite /srv/agentsite
WORKDIR /srv/agentsite
USER agentsite
VOLUME /var/lib/agentsite
EXPOSE 8000
# SIGTERM drains; give it the time that AGENTSITE_DRAIN_SECONDS says, and some more.
STOPSIGNAL SIGTERM
CMD ["python", "manage.py", "serve", "--host", "0.0.0.0", "--port", "8000"]

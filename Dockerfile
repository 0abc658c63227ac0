# syntax=docker/dockerfile:1
# The index of python:3.12-slim (3.12.14 on Debian 13) for every platform. To renew it:
#   docker buildx imagetools inspect python:3.12-slim
# Pinned by digest, the base stays the same in every build, with --pull too. To build on
# the newest one instead: sed -i 's/@sha256:[0-9a-f]*//' Dockerfile
FROM python:3.12-slim@sha256:78387bc3881b8273120a12ebe6c1ab22b018ccc2c9adf565ae1ac9b536e184ea AS build
WORKDIR /opt/headroom
RUN python -m venv /opt/venv
COPY requirements.lock ./
RUN /opt/venv/bin/python -m pip install --no-cache-dir --require-hashes -r requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY app app
RUN /opt/venv/bin/python -m pip install --no-cache-dir --no-deps --no-build-isolation --no-index -e . \
 # Building is over: the tools that only installed things need not travel.
 && /opt/venv/bin/python -m pip uninstall -y setuptools pip \
 && find /opt/venv -type d \( -name tests -o -name test \) -prune -exec rm -rf {} + \
 && find /opt/venv -name '*.so' -exec sh -c 'command -v strip >/dev/null && strip --strip-unneeded "$1" 2>/dev/null || true' _ {} \; \
 && /opt/venv/bin/python -m compileall -q /opt/venv/lib app

FROM python:3.12-slim@sha256:78387bc3881b8273120a12ebe6c1ab22b018ccc2c9adf565ae1ac9b536e184ea
# pg_dump, pg_restore and psql copy a PostgreSQL database. Their package wants all of
# Perl for scripts that are not needed, so the programs are taken out of it.
RUN apt-get update -q \
 && apt-get install -y -q --no-install-recommends libpq5 libedit2 \
 && cd /tmp \
 && apt-get download -q "$(apt-cache depends postgresql-client | sed -n 's/.*Depends: \(postgresql-client-[0-9]*\)$/\1/p')" \
 && dpkg -x postgresql-client-*.deb client \
 && cp client/usr/lib/postgresql/*/bin/pg_dump client/usr/lib/postgresql/*/bin/pg_restore \
    client/usr/lib/postgresql/*/bin/psql /usr/local/bin/ \
 && rm -rf client postgresql-client-*.deb /var/lib/apt/lists/* /var/cache/apt/*.bin
RUN groupadd --gid 10001 headroom \
 && useradd --uid 10001 --gid 10001 --no-create-home --shell /usr/sbin/nologin headroom \
 && mkdir /data /backups && chown headroom:headroom /data /backups \
 # Nothing in a running container installs anything or becomes another user.
 && rm -rf /usr/bin/apt* /usr/bin/dpkg* /usr/bin/perl* /usr/lib/*/perl-base \
    /usr/local/bin/pip* /usr/local/lib/python3.12/ensurepip \
    /usr/local/lib/python3.12/site-packages/pip* \
 && find / -xdev -type f -perm /6000 -exec chmod a-s {} +
WORKDIR /opt/headroom
COPY --from=build /opt/venv /opt/venv
COPY --from=build /opt/headroom /opt/headroom
COPY migrations migrations
COPY templates templates
COPY static static
COPY docs/authoring.md docs/authoring.md
COPY content /content
LABEL org.opencontainers.image.title="Headroom" \
      org.opencontainers.image.description="Self-hosted study and exam preparation for NCA-AIIO, with live sizing calculators" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.base.name="docker.io/library/python:3.12-slim"
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HEADROOM_HOST=0.0.0.0 \
    HEADROOM_PORT=8000 \
    HEADROOM_DATA=/data \
    HEADROOM_CONTENT=/content
USER headroom
VOLUME /data
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=10s --start-period=30s CMD ["headroom", "health"]
CMD ["headroom", "serve"]

# Serves an exported model and an index: no torch, no compiler, a user without rights. See docs/howto/export.md.
FROM python:3.11-slim AS build
WORKDIR /src
COPY pyproject.toml constraints.txt requirements-serve.txt hatch_build.py README.md LICENSE ./
RUN python -m venv /venv \
    && /venv/bin/pip install --no-cache-dir --disable-pip-version-check -c constraints.txt -r requirements-serve.txt
COPY src src
# The package's own requirements name torch, which serving does without.
RUN /venv/bin/pip install --no-cache-dir --disable-pip-version-check -c constraints.txt --no-deps .

FROM python:3.11-slim
LABEL org.opencontainers.image.title="adsh" org.opencontainers.image.licenses="Apache-2.0"
# Nothing is written but the index, and uploads under /tmp: the rest may be read-only, with a tmpfs there.
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin adsh \
    && mkdir /index && chown adsh /index
COPY --from=build /venv /venv
USER 10001
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8000/readyz', timeout=4)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["adsh", "serve"]
# All of the container's own addresses: what reaches them is for `docker run -p` to say. It asks for ADSH_TOKEN.
CMD ["/model", "/index", "--runtime", "onnx", "--host", "0.0.0.0"]

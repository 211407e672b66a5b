# A study server. Build: docker build -t penchant --build-arg VERSION=1.2.3 .
# Make a study:  docker run -v drinks:/study -v $PWD:/in penchant \
#                  penchant study new /study --name drinks --items /in/items.csv --question "…"
# Serve it:      docker run -p 127.0.0.1:8000:8000 -v drinks:/study penchant
FROM python:3.12-slim
COPY . /source
ARG VERSION=0.1.0
RUN SETUPTOOLS_SCM_PRETEND_VERSION=$VERSION pip install --no-cache-dir '/source[study,postgres]' && rm -rf /source \
    && useradd --uid 10001 --create-home study \
    && install -d -o study -g study -m 700 /study /backups
USER 10001
WORKDIR /study
VOLUME /study
EXPOSE 8000
# it is healthy when answers can be written
HEALTHCHECK --interval=30s --timeout=15s --start-period=30s --retries=3 \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8000/readyz', timeout=12)"]
# the container's own network is the loopback here: publish the port to where TLS ends
CMD ["penchant", "study", "serve", "/study", "--host", "0.0.0.0", "--port", "8000"]

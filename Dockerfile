# A study server. Build: docker build -t penchant .
# Run: docker run -p 8000:8000 -v $PWD/drinks:/study penchant
FROM python:3.12-slim
COPY . /source
RUN pip install --no-cache-dir '/source[study,postgres]' && rm -rf /source \
    && useradd --create-home study
USER study
WORKDIR /study
EXPOSE 8000
# the container's own network is the loopback here: publish the port to where TLS ends
CMD ["penchant", "study", "serve", "/study", "--host", "0.0.0.0", "--port", "8000"]

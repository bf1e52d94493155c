# Built with Node and npm only (Bun is a dev dependency); the image that runs has neither.
FROM node:24-bookworm-slim AS build
WORKDIR /src
COPY package.json package-lock.json ./
COPY test/contract/generator/package.json test/contract/generator/
RUN npm ci
COPY . .
RUN npm run build

FROM debian:12-slim
RUN useradd --system --user-group --home-dir /var/lib/tally --shell /usr/sbin/nologin tally \
 && install -d -m 0700 -o tally -g tally /var/lib/tally
COPY --from=build /src/dist/tally /usr/local/bin/tally
COPY --from=build /src/LICENSE /usr/share/doc/tally/LICENSE
USER tally
ENV TALLY_DATA_DIR=/var/lib/tally
VOLUME /var/lib/tally
EXPOSE 8080
# Requests in flight have ten seconds, and then PostgreSQL stops cleanly: stop with `docker stop -t 60`.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s --retries=3 CMD ["tally", "health"]
ENTRYPOINT ["tally"]
CMD ["serve"]

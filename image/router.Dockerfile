# The router of a fleet on OpenShell, built by sh/router-start.sh from a
# directory that holds the program and the libraries it loads, each at its own
# path. There is nothing else in it: no shell, no package, no other program.
FROM scratch
COPY . /
ENV ROUTER_INTERVAL=5
# Only told by `docker ps`; nobody restarts a container for it.
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s --retries=3 CMD ["/amap-router", "status", "--check"]
# Whoever starts it without --user gets nobody, never root.
USER 65534:65534
ENTRYPOINT ["/amap-router"]
CMD ["run"]

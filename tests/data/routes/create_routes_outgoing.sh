#cat create_routes_outgoing.sh
ip route add 10.40.1.0/24 scope global \
nexthop dev ipogif0 via 10.132.0.7 \
nexthop dev ipogif0 via 10.132.0.67 \
nexthop dev ipogif0 via 10.132.0.31 \
nexthop dev ipogif0 via 10.132.0.83 \
nexthop dev ipogif0 via 10.132.0.94 \
nexthop dev ipogif0 via 10.132.0.95

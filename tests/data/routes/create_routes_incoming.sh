#cat create_routes_incoming.sh
ip rule add from 10.100.0.91 table 1
ip rule add from 10.100.0.92 table 1
ip rule add from 10.100.0.93 table 1
ip rule add from 10.100.0.94 table 1
ip rule add from 10.100.0.95 table 1
ip rule add from 10.100.0.96 table 1

ip route add 10.10.1.0/24 dev ipogif0 scope link table 1;
ip route add default via 10.100.0.91 table 1;
ip route add 10.10.1.0/24 dev ipogif0 scope link table 2;
ip route add default via 10.100.0.92 table 2;
ip route add 10.10.1.0/24 dev ipogif0 scope link table 3;
ip route add default via 10.100.0.93 table 3;
ip route add 10.10.1.0/24 dev ipogif0 scope link table 4;
ip route add default via 10.100.0.94 table 4;
ip route add 10.10.1.0/24 dev ipogif0 scope link table 5;
ip route add default via 10.100.0.95 table 5;
ip route add 10.10.1.0/24 dev ipogif0 scope link table 6;
ip route add default via 10.100.0.96 table 6;

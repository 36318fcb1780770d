#!/bin/bash
# Payments of an MQTT broker (JSON objects, topic "payments"), answered to the topic "answers".
#
#   BROKER=localhost PORT=1883 ./mqtt.sh
#
# The broker remembers the sessions of readers and of writers (-c, -i NAME), so that a restart of the
# broker loses nothing (but a kill may): the program that writes the payments needs `-q 2 -c -i NAME`,
# too. The reader has QoS 1, as with QoS 2 mosquitto_sub drops a message that it is confirming when
# the connection breaks. Messages that come twice are faults, which are left out: the id is waiting, or
# its label is known. SIGTERM to the reader ends the stream: `kill $(cat reader.pid)`.
set -o pipefail
broker=(-h "${BROKER:-localhost}" -p "${PORT:-1883}" -c)
(
    echo "$BASHPID" > reader.pid
    exec mosquitto_sub "${broker[@]}" -q 1 -i payments-reader -t payments
) |
    ahpatron run - --label fraud --classes no,yes --id payment --state fraud.npz --answers jsonl \
        --on-fault skip --rejects rejects.jsonl --quiet |
    mosquitto_pub "${broker[@]}" -q 2 -i payments-answers -t answers -l

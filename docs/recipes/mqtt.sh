#!/bin/bash
# Payments of an MQTT broker (JSON objects, topic "payments"), answered to the topic "answers".
#
#   BROKER=localhost PORT=1883 ./mqtt.sh
#
# QoS 2 and sessions that the broker remembers (-c, -i NAME), of readers and of writers, bring each
# message once, also if the broker is restarted in between (but not if it is killed): the program that
# writes the payments needs them, too. SIGTERM to the reader ends the stream: `kill $(cat reader.pid)`.
set -o pipefail
broker=(-h "${BROKER:-localhost}" -p "${PORT:-1883}" -q 2 -c)
(
    echo "$BASHPID" > reader.pid
    exec mosquitto_sub "${broker[@]}" -i payments-reader -t payments
) |
    ahpatron run - --label fraud --classes no,yes --id payment --state fraud.npz --answers jsonl \
        --on-fault skip --rejects rejects.jsonl --quiet |
    mosquitto_pub "${broker[@]}" -i payments-answers -t answers -l

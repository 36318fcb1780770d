#!/bin/bash
# Payments of an MQTT broker (JSON objects, topic "payments"), answered to the topic "answers".
#
#   BROKER=localhost PORT=1883 ./mqtt.sh
#
# QoS 2 and a session that the broker remembers (-c, -i NAME) bring each message once, also after the
# broker was restarted (but not if it was killed). SIGTERM to the reader ends the stream: `kill $(cat reader.pid)`.
set -o pipefail
broker=(-h "${BROKER:-localhost}" -p "${PORT:-1883}" -q 2)
(
    echo "$BASHPID" > reader.pid
    exec mosquitto_sub "${broker[@]}" -c -i payments-reader -t payments
) |
    ahpatron run - --label fraud --classes no,yes --id payment --state fraud.npz --answers jsonl \
        --on-fault skip --rejects rejects.jsonl --quiet |
    mosquitto_pub "${broker[@]}" -i payments-answers -t answers -l

-- throughput
SELECT
  "t3"."region" AS "region",
  "t3"."day" AS "day",
  "t3"."size_class" AS "size_class",
  "t3"."arm" AS "arm",
  "t3"."bucket" AS "bucket",
  "t3"."bin" AS "bin",
  SUM("t3"."n") AS "n"
FROM (
  SELECT
    "t2"."region" AS "region",
    "t2"."day" AS "day",
    "t2"."size_class" AS "size_class",
    "t2"."arm" AS "arm",
    "t2"."bucket" AS "bucket",
    "t2"."bin" AS "bin",
    CASE
      WHEN isNull("t2"."bin")
      THEN 1
      WHEN isNull("t2"."unit")
      THEN 1000000000
      ELSE CAST((
        1000000000 - (
          1000000000 % nullIf(
            COUNT("t2"."bin") OVER (
              PARTITION BY "t2"."region", "t2"."day", "t2"."size_class", "t2"."arm", "t2"."unit"
              ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
            ),
            0
          )
        )
      ) / nullIf(
        COUNT("t2"."bin") OVER (
          PARTITION BY "t2"."region", "t2"."day", "t2"."size_class", "t2"."arm", "t2"."unit"
          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
        ),
        0
      ) AS Nullable(Int64))
    END AS "n"
  FROM (
    SELECT
      "t1"."region" AS "region",
      "t1"."day" AS "day",
      "t1"."size_class" AS "size_class",
      "t1"."arm" AS "arm",
      "t1"."bucket" AS "bucket",
      "t1"."unit" AS "unit",
      CASE
        WHEN NOT (
          (
            "t1"."x" >= 0.0
          ) AND (
            "t1"."x" < 1e+300
          )
        )
        THEN CAST(NULL AS Nullable(Int64))
        WHEN "t1"."x" < 1000.0
        THEN 349
        WHEN "t1"."x" > 1000000000000.0
        THEN 1396
        ELSE CAST(CEIL(LN("t1"."x") / 0.01980262729617973) AS Nullable(Int64))
      END AS "bin"
    FROM (
      SELECT
        CAST((
          (
            nullIf(
              POSITION(
                'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
                "t0"."service_country"
              ) - 1,
              -1
            ) + (
              ABS(CAST(LENGTH("t0"."service_country") AS Nullable(Int64)) - 2) * 1134
            )
          ) - (
            (
              nullIf(
                POSITION(
                  'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
                  "t0"."service_country"
                ) - 1,
                -1
              ) + (
                ABS(CAST(LENGTH("t0"."service_country") AS Nullable(Int64)) - 2) * 1134
              )
            ) % 189
          )
        ) / 189 AS Nullable(Int64)) AS "region",
        CAST((
          "t0"."service_start_unix_ns" - (
            "t0"."service_start_unix_ns" % 86400000000000
          )
        ) / 86400000000000 AS Nullable(Int64)) AS "day",
        CASE
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 100000
          THEN 0
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 1000000
          THEN 1
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 3000000
          THEN 2
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 10000000
          THEN 3
          WHEN isNotNull(COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered"))
          THEN 4
          ELSE CAST(NULL AS Nullable(Int64))
        END AS "size_class",
        "t0"."arm" AS "arm",
        "t0"."arm_bucket" AS "bucket",
        "t0"."arm_unit" AS "unit",
        CASE
          WHEN (
            COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") >= 3000000
          )
          AND isNull("t0"."playback_items")
          THEN CASE
            WHEN (
              COALESCE(
                "t0"."source",
                CASE
                  WHEN "t0"."engine" IN ('sim', 'quic-sim', 'netns', 'play')
                  THEN 'client'
                  WHEN "t0"."engine" IN ('serve', 'watch')
                  THEN 'acked'
                  ELSE CAST(NULL AS Nullable(String))
                END
              ) <> 'acked'
            )
            AND isNotNull("t0"."completion_ns")
            AND isNull("t0"."playback_items")
            AND NOT (
              COALESCE("t0"."service_broken_off" > 0, FALSE)
              OR (
                NOT (
                  COALESCE("t0"."engine", '') IN ('sim', 'quic-sim', 'netns', 'play', 'serve', 'watch', 'bpf')
                )
                AND COALESCE("t0"."bytes_delivered" < "t0"."size_bytes", FALSE)
              )
            )
            THEN (
              CAST("t0"."bytes_delivered" AS Nullable(Float64)) * 8000000000.0
            ) / CAST(nullIf("t0"."completion_ns", 0) AS Nullable(Float64))
            ELSE (
              CAST("t0"."bytes_acked" AS Nullable(Float64)) * 8000000000.0
            ) / CAST(nullIf("t0"."busy_ns", 0) AS Nullable(Float64))
          END
          ELSE CAST(NULL AS Nullable(Float64))
        END AS "x"
      FROM "records" AS "t0"
      WHERE
        (
          (
            "t0"."service_scope" = 'response'
          )
          OR isNull("t0"."service_scope")
          OR (
            (
              "t0"."engine" = 'watch'
            ) AND (
              "t0"."service_scope" = 'connection'
            )
          )
        )
        AND "t0"."arm_experiment" = 'bbr-2026'
        AND isNotNull("t0"."arm")
        AND "t0"."arm_bucket" >= 0
        AND "t0"."arm_bucket" < 100
    ) AS "t1"
    WHERE
      isNotNull("t1"."x") OR isNaN("t1"."x")
  ) AS "t2"
) AS "t3"
GROUP BY
  "t3"."region",
  "t3"."day",
  "t3"."size_class",
  "t3"."arm",
  "t3"."bucket",
  "t3"."bin";

-- completion
SELECT
  "t3"."region" AS "region",
  "t3"."day" AS "day",
  "t3"."size_class" AS "size_class",
  "t3"."arm" AS "arm",
  "t3"."bucket" AS "bucket",
  "t3"."bin" AS "bin",
  SUM("t3"."n") AS "n"
FROM (
  SELECT
    "t2"."region" AS "region",
    "t2"."day" AS "day",
    "t2"."size_class" AS "size_class",
    "t2"."arm" AS "arm",
    "t2"."bucket" AS "bucket",
    "t2"."bin" AS "bin",
    CASE
      WHEN isNull("t2"."bin")
      THEN 1
      WHEN isNull("t2"."unit")
      THEN 1000000000
      ELSE CAST((
        1000000000 - (
          1000000000 % nullIf(
            COUNT("t2"."bin") OVER (
              PARTITION BY "t2"."region", "t2"."day", "t2"."size_class", "t2"."arm", "t2"."unit"
              ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
            ),
            0
          )
        )
      ) / nullIf(
        COUNT("t2"."bin") OVER (
          PARTITION BY "t2"."region", "t2"."day", "t2"."size_class", "t2"."arm", "t2"."unit"
          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
        ),
        0
      ) AS Nullable(Int64))
    END AS "n"
  FROM (
    SELECT
      "t1"."region" AS "region",
      "t1"."day" AS "day",
      "t1"."size_class" AS "size_class",
      "t1"."arm" AS "arm",
      "t1"."bucket" AS "bucket",
      "t1"."unit" AS "unit",
      CASE
        WHEN NOT (
          (
            "t1"."x" >= 0.0
          ) AND (
            "t1"."x" < 1e+300
          )
        )
        THEN CAST(NULL AS Nullable(Int64))
        WHEN "t1"."x" < 1e-06
        THEN -697
        WHEN "t1"."x" > 3600.0
        THEN 414
        ELSE CAST(CEIL(LN("t1"."x") / 0.01980262729617973) AS Nullable(Int64))
      END AS "bin"
    FROM (
      SELECT
        CAST((
          (
            nullIf(
              POSITION(
                'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
                "t0"."service_country"
              ) - 1,
              -1
            ) + (
              ABS(CAST(LENGTH("t0"."service_country") AS Nullable(Int64)) - 2) * 1134
            )
          ) - (
            (
              nullIf(
                POSITION(
                  'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
                  "t0"."service_country"
                ) - 1,
                -1
              ) + (
                ABS(CAST(LENGTH("t0"."service_country") AS Nullable(Int64)) - 2) * 1134
              )
            ) % 189
          )
        ) / 189 AS Nullable(Int64)) AS "region",
        CAST((
          "t0"."service_start_unix_ns" - (
            "t0"."service_start_unix_ns" % 86400000000000
          )
        ) / 86400000000000 AS Nullable(Int64)) AS "day",
        CASE
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 100000
          THEN 0
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 1000000
          THEN 1
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 3000000
          THEN 2
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 10000000
          THEN 3
          WHEN isNotNull(COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered"))
          THEN 4
          ELSE CAST(NULL AS Nullable(Int64))
        END AS "size_class",
        "t0"."arm" AS "arm",
        "t0"."arm_bucket" AS "bucket",
        "t0"."arm_unit" AS "unit",
        CASE
          WHEN "t0"."size_bytes" < 3000000
          THEN CASE
            WHEN COALESCE("t0"."service_broken_off" > 0, FALSE)
            OR (
              NOT (
                COALESCE("t0"."engine", '') IN ('sim', 'quic-sim', 'netns', 'play', 'serve', 'watch', 'bpf')
              )
              AND COALESCE("t0"."bytes_delivered" < "t0"."size_bytes", FALSE)
            )
            THEN 3600.0
            ELSE COALESCE(CAST("t0"."completion_ns" AS Nullable(Float64)) / 1000000000.0, 3600.0)
          END
          ELSE CAST(NULL AS Nullable(Float64))
        END AS "x"
      FROM "records" AS "t0"
      WHERE
        (
          (
            "t0"."service_scope" = 'response'
          )
          OR isNull("t0"."service_scope")
          OR (
            (
              "t0"."engine" = 'watch'
            ) AND (
              "t0"."service_scope" = 'connection'
            )
          )
        )
        AND "t0"."arm_experiment" = 'bbr-2026'
        AND isNotNull("t0"."arm")
        AND "t0"."arm_bucket" >= 0
        AND "t0"."arm_bucket" < 100
    ) AS "t1"
    WHERE
      isNotNull("t1"."x") OR isNaN("t1"."x")
  ) AS "t2"
) AS "t3"
GROUP BY
  "t3"."region",
  "t3"."day",
  "t3"."size_class",
  "t3"."arm",
  "t3"."bucket",
  "t3"."bin";

-- first_byte
SELECT
  "t3"."region" AS "region",
  "t3"."day" AS "day",
  "t3"."size_class" AS "size_class",
  "t3"."arm" AS "arm",
  "t3"."bucket" AS "bucket",
  "t3"."bin" AS "bin",
  SUM("t3"."n") AS "n"
FROM (
  SELECT
    "t2"."region" AS "region",
    "t2"."day" AS "day",
    "t2"."size_class" AS "size_class",
    "t2"."arm" AS "arm",
    "t2"."bucket" AS "bucket",
    "t2"."bin" AS "bin",
    CASE
      WHEN isNull("t2"."bin")
      THEN 1
      WHEN isNull("t2"."unit")
      THEN 1000000000
      ELSE CAST((
        1000000000 - (
          1000000000 % nullIf(
            COUNT("t2"."bin") OVER (
              PARTITION BY "t2"."region", "t2"."day", "t2"."size_class", "t2"."arm", "t2"."unit"
              ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
            ),
            0
          )
        )
      ) / nullIf(
        COUNT("t2"."bin") OVER (
          PARTITION BY "t2"."region", "t2"."day", "t2"."size_class", "t2"."arm", "t2"."unit"
          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
        ),
        0
      ) AS Nullable(Int64))
    END AS "n"
  FROM (
    SELECT
      "t1"."region" AS "region",
      "t1"."day" AS "day",
      "t1"."size_class" AS "size_class",
      "t1"."arm" AS "arm",
      "t1"."bucket" AS "bucket",
      "t1"."unit" AS "unit",
      CASE
        WHEN NOT (
          (
            "t1"."x" >= 0.0
          ) AND (
            "t1"."x" < 1e+300
          )
        )
        THEN CAST(NULL AS Nullable(Int64))
        WHEN "t1"."x" < 1e-06
        THEN -697
        WHEN "t1"."x" > 3600.0
        THEN 414
        ELSE CAST(CEIL(LN("t1"."x") / 0.01980262729617973) AS Nullable(Int64))
      END AS "bin"
    FROM (
      SELECT
        CAST((
          (
            nullIf(
              POSITION(
                'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
                "t0"."service_country"
              ) - 1,
              -1
            ) + (
              ABS(CAST(LENGTH("t0"."service_country") AS Nullable(Int64)) - 2) * 1134
            )
          ) - (
            (
              nullIf(
                POSITION(
                  'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
                  "t0"."service_country"
                ) - 1,
                -1
              ) + (
                ABS(CAST(LENGTH("t0"."service_country") AS Nullable(Int64)) - 2) * 1134
              )
            ) % 189
          )
        ) / 189 AS Nullable(Int64)) AS "region",
        CAST((
          "t0"."service_start_unix_ns" - (
            "t0"."service_start_unix_ns" % 86400000000000
          )
        ) / 86400000000000 AS Nullable(Int64)) AS "day",
        CASE
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 100000
          THEN 0
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 1000000
          THEN 1
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 3000000
          THEN 2
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 10000000
          THEN 3
          WHEN isNotNull(COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered"))
          THEN 4
          ELSE CAST(NULL AS Nullable(Int64))
        END AS "size_class",
        "t0"."arm" AS "arm",
        "t0"."arm_bucket" AS "bucket",
        "t0"."arm_unit" AS "unit",
        CAST("t0"."first_byte_ns" AS Nullable(Float64)) / 1000000000.0 AS "x"
      FROM "records" AS "t0"
      WHERE
        (
          (
            "t0"."service_scope" = 'response'
          )
          OR isNull("t0"."service_scope")
          OR (
            (
              "t0"."engine" = 'watch'
            ) AND (
              "t0"."service_scope" = 'connection'
            )
          )
        )
        AND "t0"."arm_experiment" = 'bbr-2026'
        AND isNotNull("t0"."arm")
        AND "t0"."arm_bucket" >= 0
        AND "t0"."arm_bucket" < 100
        AND (
          isNotNull(CAST("t0"."first_byte_ns" AS Nullable(Float64)) / 1000000000.0)
          OR isNaN(CAST("t0"."first_byte_ns" AS Nullable(Float64)) / 1000000000.0)
        )
    ) AS "t1"
  ) AS "t2"
) AS "t3"
GROUP BY
  "t3"."region",
  "t3"."day",
  "t3"."size_class",
  "t3"."arm",
  "t3"."bucket",
  "t3"."bin";

-- retransmitted
SELECT
  "t1"."region" AS "region",
  "t1"."day" AS "day",
  "t1"."size_class" AS "size_class",
  "t1"."arm" AS "arm",
  "t1"."bucket" AS "bucket",
  COALESCE(
    sumIf("t1"."numerator", (
      "t1"."numerator" >= 0
    ) AND (
      "t1"."denominator" >= 0
    )),
    0
  ) AS "numerator",
  COALESCE(
    sumIf("t1"."denominator", (
      "t1"."numerator" >= 0
    ) AND (
      "t1"."denominator" >= 0
    )),
    0
  ) AS "denominator",
  countIf(NOT (
    (
      "t1"."numerator" >= 0
    ) AND (
      "t1"."denominator" >= 0
    )
  )) AS "n"
FROM (
  SELECT
    CAST((
      (
        nullIf(
          POSITION(
            'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
            "t0"."service_country"
          ) - 1,
          -1
        ) + (
          ABS(CAST(LENGTH("t0"."service_country") AS Nullable(Int64)) - 2) * 1134
        )
      ) - (
        (
          nullIf(
            POSITION(
              'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
              "t0"."service_country"
            ) - 1,
            -1
          ) + (
            ABS(CAST(LENGTH("t0"."service_country") AS Nullable(Int64)) - 2) * 1134
          )
        ) % 189
      )
    ) / 189 AS Nullable(Int64)) AS "region",
    CAST((
      "t0"."service_start_unix_ns" - (
        "t0"."service_start_unix_ns" % 86400000000000
      )
    ) / 86400000000000 AS Nullable(Int64)) AS "day",
    CASE
      WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 100000
      THEN 0
      WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 1000000
      THEN 1
      WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 3000000
      THEN 2
      WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 10000000
      THEN 3
      WHEN isNotNull(COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered"))
      THEN 4
      ELSE CAST(NULL AS Nullable(Int64))
    END AS "size_class",
    "t0"."arm" AS "arm",
    "t0"."arm_bucket" AS "bucket",
    "t0"."bytes_retransmitted" AS "numerator",
    "t0"."bytes_sent" AS "denominator"
  FROM "records" AS "t0"
  WHERE
    (
      (
        "t0"."service_scope" = 'response'
      )
      OR isNull("t0"."service_scope")
      OR (
        (
          "t0"."engine" = 'watch'
        ) AND (
          "t0"."service_scope" = 'connection'
        )
      )
    )
    AND "t0"."arm_experiment" = 'bbr-2026'
    AND isNotNull("t0"."arm")
    AND "t0"."arm_bucket" >= 0
    AND "t0"."arm_bucket" < 100
    AND isNotNull("t0"."bytes_retransmitted")
    AND isNotNull("t0"."bytes_sent")
) AS "t1"
GROUP BY
  "t1"."region",
  "t1"."day",
  "t1"."size_class",
  "t1"."arm",
  "t1"."bucket";

-- rtt_inflation
SELECT
  "t3"."region" AS "region",
  "t3"."day" AS "day",
  "t3"."size_class" AS "size_class",
  "t3"."arm" AS "arm",
  "t3"."bucket" AS "bucket",
  "t3"."bin" AS "bin",
  SUM("t3"."n") AS "n"
FROM (
  SELECT
    "t2"."region" AS "region",
    "t2"."day" AS "day",
    "t2"."size_class" AS "size_class",
    "t2"."arm" AS "arm",
    "t2"."bucket" AS "bucket",
    "t2"."bin" AS "bin",
    CASE
      WHEN isNull("t2"."bin")
      THEN 1
      WHEN isNull("t2"."unit")
      THEN 1000000000
      ELSE CAST((
        1000000000 - (
          1000000000 % nullIf(
            COUNT("t2"."bin") OVER (
              PARTITION BY "t2"."region", "t2"."day", "t2"."size_class", "t2"."arm", "t2"."unit"
              ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
            ),
            0
          )
        )
      ) / nullIf(
        COUNT("t2"."bin") OVER (
          PARTITION BY "t2"."region", "t2"."day", "t2"."size_class", "t2"."arm", "t2"."unit"
          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
        ),
        0
      ) AS Nullable(Int64))
    END AS "n"
  FROM (
    SELECT
      "t1"."region" AS "region",
      "t1"."day" AS "day",
      "t1"."size_class" AS "size_class",
      "t1"."arm" AS "arm",
      "t1"."bucket" AS "bucket",
      "t1"."unit" AS "unit",
      CASE
        WHEN NOT (
          (
            "t1"."x" >= 0.0
          ) AND (
            "t1"."x" < 1e+300
          )
        )
        THEN CAST(NULL AS Nullable(Int64))
        WHEN "t1"."x" < 0.01
        THEN -232
        WHEN "t1"."x" > 100000.0
        THEN 582
        ELSE CAST(CEIL(LN("t1"."x") / 0.01980262729617973) AS Nullable(Int64))
      END AS "bin"
    FROM (
      SELECT
        CAST((
          (
            nullIf(
              POSITION(
                'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
                "t0"."service_country"
              ) - 1,
              -1
            ) + (
              ABS(CAST(LENGTH("t0"."service_country") AS Nullable(Int64)) - 2) * 1134
            )
          ) - (
            (
              nullIf(
                POSITION(
                  'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
                  "t0"."service_country"
                ) - 1,
                -1
              ) + (
                ABS(CAST(LENGTH("t0"."service_country") AS Nullable(Int64)) - 2) * 1134
              )
            ) % 189
          )
        ) / 189 AS Nullable(Int64)) AS "region",
        CAST((
          "t0"."service_start_unix_ns" - (
            "t0"."service_start_unix_ns" % 86400000000000
          )
        ) / 86400000000000 AS Nullable(Int64)) AS "day",
        CASE
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 100000
          THEN 0
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 1000000
          THEN 1
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 3000000
          THEN 2
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 10000000
          THEN 3
          WHEN isNotNull(COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered"))
          THEN 4
          ELSE CAST(NULL AS Nullable(Int64))
        END AS "size_class",
        "t0"."arm" AS "arm",
        "t0"."arm_bucket" AS "bucket",
        "t0"."arm_unit" AS "unit",
        "t0"."rtt_p50_ms" / nullIf("t0"."rtt_min_ms", 0.0) AS "x"
      FROM "records" AS "t0"
      WHERE
        (
          (
            "t0"."service_scope" = 'response'
          )
          OR isNull("t0"."service_scope")
          OR (
            (
              "t0"."engine" = 'watch'
            ) AND (
              "t0"."service_scope" = 'connection'
            )
          )
        )
        AND "t0"."arm_experiment" = 'bbr-2026'
        AND isNotNull("t0"."arm")
        AND "t0"."arm_bucket" >= 0
        AND "t0"."arm_bucket" < 100
        AND (
          isNotNull("t0"."rtt_p50_ms" / nullIf("t0"."rtt_min_ms", 0.0))
          OR isNaN("t0"."rtt_p50_ms" / nullIf("t0"."rtt_min_ms", 0.0))
        )
    ) AS "t1"
  ) AS "t2"
) AS "t3"
GROUP BY
  "t3"."region",
  "t3"."day",
  "t3"."size_class",
  "t3"."arm",
  "t3"."bucket",
  "t3"."bin";

-- aborted
SELECT
  "t1"."region" AS "region",
  "t1"."day" AS "day",
  "t1"."size_class" AS "size_class",
  "t1"."arm" AS "arm",
  "t1"."bucket" AS "bucket",
  COALESCE(
    sumIf("t1"."numerator", (
      "t1"."numerator" >= 0
    ) AND (
      "t1"."denominator" >= 0
    )),
    0
  ) AS "numerator",
  COALESCE(
    sumIf("t1"."denominator", (
      "t1"."numerator" >= 0
    ) AND (
      "t1"."denominator" >= 0
    )),
    0
  ) AS "denominator",
  countIf(NOT (
    (
      "t1"."numerator" >= 0
    ) AND (
      "t1"."denominator" >= 0
    )
  )) AS "n"
FROM (
  SELECT
    CAST((
      (
        nullIf(
          POSITION(
            'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
            "t0"."service_country"
          ) - 1,
          -1
        ) + (
          ABS(CAST(LENGTH("t0"."service_country") AS Nullable(Int64)) - 2) * 1134
        )
      ) - (
        (
          nullIf(
            POSITION(
              'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
              "t0"."service_country"
            ) - 1,
            -1
          ) + (
            ABS(CAST(LENGTH("t0"."service_country") AS Nullable(Int64)) - 2) * 1134
          )
        ) % 189
      )
    ) / 189 AS Nullable(Int64)) AS "region",
    CAST((
      "t0"."service_start_unix_ns" - (
        "t0"."service_start_unix_ns" % 86400000000000
      )
    ) / 86400000000000 AS Nullable(Int64)) AS "day",
    CASE
      WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 100000
      THEN 0
      WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 1000000
      THEN 1
      WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 3000000
      THEN 2
      WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 10000000
      THEN 3
      WHEN isNotNull(COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered"))
      THEN 4
      ELSE CAST(NULL AS Nullable(Int64))
    END AS "size_class",
    "t0"."arm" AS "arm",
    "t0"."arm_bucket" AS "bucket",
    "t0"."service_broken_off" AS "numerator",
    "t0"."service_responses" AS "denominator"
  FROM "records" AS "t0"
  WHERE
    (
      (
        "t0"."service_scope" = 'response'
      )
      OR isNull("t0"."service_scope")
      OR (
        (
          "t0"."engine" = 'watch'
        ) AND (
          "t0"."service_scope" = 'connection'
        )
      )
    )
    AND "t0"."arm_experiment" = 'bbr-2026'
    AND isNotNull("t0"."arm")
    AND "t0"."arm_bucket" >= 0
    AND "t0"."arm_bucket" < 100
    AND isNotNull("t0"."service_broken_off")
    AND isNotNull("t0"."service_responses")
) AS "t1"
GROUP BY
  "t1"."region",
  "t1"."day",
  "t1"."size_class",
  "t1"."arm",
  "t1"."bucket";

-- playback_latency
SELECT
  "t3"."region" AS "region",
  "t3"."day" AS "day",
  "t3"."size_class" AS "size_class",
  "t3"."arm" AS "arm",
  "t3"."bucket" AS "bucket",
  "t3"."bin" AS "bin",
  SUM("t3"."n") AS "n"
FROM (
  SELECT
    "t2"."region" AS "region",
    "t2"."day" AS "day",
    "t2"."size_class" AS "size_class",
    "t2"."arm" AS "arm",
    "t2"."bucket" AS "bucket",
    "t2"."bin" AS "bin",
    CASE
      WHEN isNull("t2"."bin")
      THEN 1
      WHEN isNull("t2"."unit")
      THEN 1000000000
      ELSE CAST((
        1000000000 - (
          1000000000 % nullIf(
            COUNT("t2"."bin") OVER (
              PARTITION BY "t2"."region", "t2"."day", "t2"."size_class", "t2"."arm", "t2"."unit"
              ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
            ),
            0
          )
        )
      ) / nullIf(
        COUNT("t2"."bin") OVER (
          PARTITION BY "t2"."region", "t2"."day", "t2"."size_class", "t2"."arm", "t2"."unit"
          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
        ),
        0
      ) AS Nullable(Int64))
    END AS "n"
  FROM (
    SELECT
      "t1"."region" AS "region",
      "t1"."day" AS "day",
      "t1"."size_class" AS "size_class",
      "t1"."arm" AS "arm",
      "t1"."bucket" AS "bucket",
      "t1"."unit" AS "unit",
      CASE
        WHEN NOT (
          (
            "t1"."x" >= 0.0
          ) AND (
            "t1"."x" < 1e+300
          )
        )
        THEN CAST(NULL AS Nullable(Int64))
        WHEN "t1"."x" < 1e-06
        THEN -697
        WHEN "t1"."x" > 3600.0
        THEN 414
        ELSE CAST(CEIL(LN("t1"."x") / 0.01980262729617973) AS Nullable(Int64))
      END AS "bin"
    FROM (
      SELECT
        CAST((
          (
            nullIf(
              POSITION(
                'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
                "t0"."service_country"
              ) - 1,
              -1
            ) + (
              ABS(CAST(LENGTH("t0"."service_country") AS Nullable(Int64)) - 2) * 1134
            )
          ) - (
            (
              nullIf(
                POSITION(
                  'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
                  "t0"."service_country"
                ) - 1,
                -1
              ) + (
                ABS(CAST(LENGTH("t0"."service_country") AS Nullable(Int64)) - 2) * 1134
              )
            ) % 189
          )
        ) / 189 AS Nullable(Int64)) AS "region",
        CAST((
          "t0"."service_start_unix_ns" - (
            "t0"."service_start_unix_ns" % 86400000000000
          )
        ) / 86400000000000 AS Nullable(Int64)) AS "day",
        CASE
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 100000
          THEN 0
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 1000000
          THEN 1
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 3000000
          THEN 2
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 10000000
          THEN 3
          WHEN isNotNull(COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered"))
          THEN 4
          ELSE CAST(NULL AS Nullable(Int64))
        END AS "size_class",
        "t0"."arm" AS "arm",
        "t0"."arm_bucket" AS "bucket",
        "t0"."arm_unit" AS "unit",
        CASE
          WHEN isNotNull("t0"."playback_items")
          THEN COALESCE(CAST("t0"."playback_startup_ns" AS Nullable(Float64)) / 1000000000.0, 3600.0)
          ELSE CAST(NULL AS Nullable(Float64))
        END AS "x"
      FROM "records" AS "t0"
      WHERE
        (
          (
            "t0"."service_scope" = 'response'
          )
          OR isNull("t0"."service_scope")
          OR (
            (
              "t0"."engine" = 'watch'
            ) AND (
              "t0"."service_scope" = 'connection'
            )
          )
        )
        AND "t0"."arm_experiment" = 'bbr-2026'
        AND isNotNull("t0"."arm")
        AND "t0"."arm_bucket" >= 0
        AND "t0"."arm_bucket" < 100
    ) AS "t1"
    WHERE
      isNotNull("t1"."x") OR isNaN("t1"."x")
  ) AS "t2"
) AS "t3"
GROUP BY
  "t3"."region",
  "t3"."day",
  "t3"."size_class",
  "t3"."arm",
  "t3"."bucket",
  "t3"."bin";

-- stutters
SELECT
  "t1"."region" AS "region",
  "t1"."day" AS "day",
  "t1"."size_class" AS "size_class",
  "t1"."arm" AS "arm",
  "t1"."bucket" AS "bucket",
  COALESCE(
    sumIf("t1"."numerator", (
      "t1"."numerator" >= 0
    ) AND (
      "t1"."denominator" >= 0
    )),
    0
  ) AS "numerator",
  COALESCE(
    sumIf("t1"."denominator", (
      "t1"."numerator" >= 0
    ) AND (
      "t1"."denominator" >= 0
    )),
    0
  ) AS "denominator",
  countIf(NOT (
    (
      "t1"."numerator" >= 0
    ) AND (
      "t1"."denominator" >= 0
    )
  )) AS "n"
FROM (
  SELECT
    CAST((
      (
        nullIf(
          POSITION(
            'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
            "t0"."service_country"
          ) - 1,
          -1
        ) + (
          ABS(CAST(LENGTH("t0"."service_country") AS Nullable(Int64)) - 2) * 1134
        )
      ) - (
        (
          nullIf(
            POSITION(
              'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
              "t0"."service_country"
            ) - 1,
            -1
          ) + (
            ABS(CAST(LENGTH("t0"."service_country") AS Nullable(Int64)) - 2) * 1134
          )
        ) % 189
      )
    ) / 189 AS Nullable(Int64)) AS "region",
    CAST((
      "t0"."service_start_unix_ns" - (
        "t0"."service_start_unix_ns" % 86400000000000
      )
    ) / 86400000000000 AS Nullable(Int64)) AS "day",
    CASE
      WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 100000
      THEN 0
      WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 1000000
      THEN 1
      WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 3000000
      THEN 2
      WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 10000000
      THEN 3
      WHEN isNotNull(COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered"))
      THEN 4
      ELSE CAST(NULL AS Nullable(Int64))
    END AS "size_class",
    "t0"."arm" AS "arm",
    "t0"."arm_bucket" AS "bucket",
    "t0"."playback_stutters" AS "numerator",
    "t0"."playback_items" AS "denominator"
  FROM "records" AS "t0"
  WHERE
    (
      (
        "t0"."service_scope" = 'response'
      )
      OR isNull("t0"."service_scope")
      OR (
        (
          "t0"."engine" = 'watch'
        ) AND (
          "t0"."service_scope" = 'connection'
        )
      )
    )
    AND "t0"."arm_experiment" = 'bbr-2026'
    AND isNotNull("t0"."arm")
    AND "t0"."arm_bucket" >= 0
    AND "t0"."arm_bucket" < 100
    AND isNotNull("t0"."playback_stutters")
    AND isNotNull("t0"."playback_items")
) AS "t1"
GROUP BY
  "t1"."region",
  "t1"."day",
  "t1"."size_class",
  "t1"."arm",
  "t1"."bucket";

-- stalled
SELECT
  "t2"."region" AS "region",
  "t2"."day" AS "day",
  "t2"."size_class" AS "size_class",
  "t2"."arm" AS "arm",
  "t2"."bucket" AS "bucket",
  COALESCE(
    sumIf("t2"."numerator", (
      "t2"."numerator" >= 0
    ) AND (
      "t2"."denominator" >= 0
    )),
    0
  ) AS "numerator",
  COALESCE(
    sumIf("t2"."denominator", (
      "t2"."numerator" >= 0
    ) AND (
      "t2"."denominator" >= 0
    )),
    0
  ) AS "denominator",
  countIf(NOT (
    (
      "t2"."numerator" >= 0
    ) AND (
      "t2"."denominator" >= 0
    )
  )) AS "n"
FROM (
  SELECT
    *
  FROM (
    SELECT
      CAST((
        (
          nullIf(
            POSITION(
              'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
              "t0"."service_country"
            ) - 1,
            -1
          ) + (
            ABS(CAST(LENGTH("t0"."service_country") AS Nullable(Int64)) - 2) * 1134
          )
        ) - (
          (
            nullIf(
              POSITION(
                'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
                "t0"."service_country"
              ) - 1,
              -1
            ) + (
              ABS(CAST(LENGTH("t0"."service_country") AS Nullable(Int64)) - 2) * 1134
            )
          ) % 189
        )
      ) / 189 AS Nullable(Int64)) AS "region",
      CAST((
        "t0"."service_start_unix_ns" - (
          "t0"."service_start_unix_ns" % 86400000000000
        )
      ) / 86400000000000 AS Nullable(Int64)) AS "day",
      CASE
        WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 100000
        THEN 0
        WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 1000000
        THEN 1
        WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 3000000
        THEN 2
        WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 10000000
        THEN 3
        WHEN isNotNull(COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered"))
        THEN 4
        ELSE CAST(NULL AS Nullable(Int64))
      END AS "size_class",
      "t0"."arm" AS "arm",
      "t0"."arm_bucket" AS "bucket",
      CAST(FLOOR(CAST("t0"."playback_stalled_ns" AS Nullable(Float64)) / 1000.0) AS Nullable(Int64)) AS "numerator",
      CAST(FLOOR(CAST("t0"."playback_stalled_ns" AS Nullable(Float64)) / 1000.0) AS Nullable(Int64)) + CAST(FLOOR(CAST("t0"."playback_played_ns" AS Nullable(Float64)) / 1000.0) AS Nullable(Int64)) AS "denominator"
    FROM "records" AS "t0"
    WHERE
      (
        (
          "t0"."service_scope" = 'response'
        )
        OR isNull("t0"."service_scope")
        OR (
          (
            "t0"."engine" = 'watch'
          ) AND (
            "t0"."service_scope" = 'connection'
          )
        )
      )
      AND "t0"."arm_experiment" = 'bbr-2026'
      AND isNotNull("t0"."arm")
      AND "t0"."arm_bucket" >= 0
      AND "t0"."arm_bucket" < 100
  ) AS "t1"
  WHERE
    isNotNull("t1"."numerator") AND isNotNull("t1"."denominator")
) AS "t2"
GROUP BY
  "t2"."region",
  "t2"."day",
  "t2"."size_class",
  "t2"."arm",
  "t2"."bucket";

-- bandwidth
SELECT
  "t3"."region" AS "region",
  "t3"."day" AS "day",
  "t3"."size_class" AS "size_class",
  "t3"."arm" AS "arm",
  "t3"."bucket" AS "bucket",
  "t3"."bin" AS "bin",
  SUM("t3"."n") AS "n"
FROM (
  SELECT
    "t2"."region" AS "region",
    "t2"."day" AS "day",
    "t2"."size_class" AS "size_class",
    "t2"."arm" AS "arm",
    "t2"."bucket" AS "bucket",
    "t2"."bin" AS "bin",
    CASE
      WHEN isNull("t2"."bin")
      THEN 1
      WHEN isNull("t2"."unit")
      THEN 1000000000
      ELSE CAST((
        1000000000 - (
          1000000000 % nullIf(
            COUNT("t2"."bin") OVER (
              PARTITION BY "t2"."region", "t2"."day", "t2"."size_class", "t2"."arm", "t2"."unit"
              ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
            ),
            0
          )
        )
      ) / nullIf(
        COUNT("t2"."bin") OVER (
          PARTITION BY "t2"."region", "t2"."day", "t2"."size_class", "t2"."arm", "t2"."unit"
          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
        ),
        0
      ) AS Nullable(Int64))
    END AS "n"
  FROM (
    SELECT
      "t1"."region" AS "region",
      "t1"."day" AS "day",
      "t1"."size_class" AS "size_class",
      "t1"."arm" AS "arm",
      "t1"."bucket" AS "bucket",
      "t1"."unit" AS "unit",
      CASE
        WHEN NOT (
          (
            "t1"."x" >= 0.0
          ) AND (
            "t1"."x" < 1e+300
          )
        )
        THEN CAST(NULL AS Nullable(Int64))
        WHEN "t1"."x" < 1000.0
        THEN 349
        WHEN "t1"."x" > 1000000000000.0
        THEN 1396
        ELSE CAST(CEIL(LN("t1"."x") / 0.01980262729617973) AS Nullable(Int64))
      END AS "bin"
    FROM (
      SELECT
        CAST((
          (
            nullIf(
              POSITION(
                'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
                "t0"."service_country"
              ) - 1,
              -1
            ) + (
              ABS(CAST(LENGTH("t0"."service_country") AS Nullable(Int64)) - 2) * 1134
            )
          ) - (
            (
              nullIf(
                POSITION(
                  'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
                  "t0"."service_country"
                ) - 1,
                -1
              ) + (
                ABS(CAST(LENGTH("t0"."service_country") AS Nullable(Int64)) - 2) * 1134
              )
            ) % 189
          )
        ) / 189 AS Nullable(Int64)) AS "region",
        CAST((
          "t0"."service_start_unix_ns" - (
            "t0"."service_start_unix_ns" % 86400000000000
          )
        ) / 86400000000000 AS Nullable(Int64)) AS "day",
        CASE
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 100000
          THEN 0
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 1000000
          THEN 1
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 3000000
          THEN 2
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 10000000
          THEN 3
          WHEN isNotNull(COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered"))
          THEN 4
          ELSE CAST(NULL AS Nullable(Int64))
        END AS "size_class",
        "t0"."arm" AS "arm",
        "t0"."arm_bucket" AS "bucket",
        "t0"."arm_unit" AS "unit",
        CASE
          WHEN (
            COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") >= 500000
          )
          OR isNotNull("t0"."playback_items")
          THEN CASE
            WHEN (
              COALESCE(
                "t0"."source",
                CASE
                  WHEN "t0"."engine" IN ('sim', 'quic-sim', 'netns', 'play')
                  THEN 'client'
                  WHEN "t0"."engine" IN ('serve', 'watch')
                  THEN 'acked'
                  ELSE CAST(NULL AS Nullable(String))
                END
              ) <> 'acked'
            )
            AND isNotNull("t0"."completion_ns")
            AND isNull("t0"."playback_items")
            AND NOT (
              COALESCE("t0"."service_broken_off" > 0, FALSE)
              OR (
                NOT (
                  COALESCE("t0"."engine", '') IN ('sim', 'quic-sim', 'netns', 'play', 'serve', 'watch', 'bpf')
                )
                AND COALESCE("t0"."bytes_delivered" < "t0"."size_bytes", FALSE)
              )
            )
            THEN (
              CAST("t0"."bytes_delivered" AS Nullable(Float64)) * 8000000000.0
            ) / CAST(nullIf("t0"."completion_ns", 0) AS Nullable(Float64))
            ELSE (
              CAST("t0"."bytes_acked" AS Nullable(Float64)) * 8000000000.0
            ) / CAST(nullIf("t0"."busy_ns", 0) AS Nullable(Float64))
          END
          ELSE CAST(NULL AS Nullable(Float64))
        END AS "x"
      FROM "records" AS "t0"
      WHERE
        (
          (
            "t0"."service_scope" = 'response'
          )
          OR isNull("t0"."service_scope")
          OR (
            (
              "t0"."engine" = 'watch'
            ) AND (
              "t0"."service_scope" = 'connection'
            )
          )
        )
        AND "t0"."arm_experiment" = 'bbr-2026'
        AND isNotNull("t0"."arm")
        AND "t0"."arm_bucket" >= 0
        AND "t0"."arm_bucket" < 100
    ) AS "t1"
    WHERE
      isNotNull("t1"."x") OR isNaN("t1"."x")
  ) AS "t2"
) AS "t3"
GROUP BY
  "t3"."region",
  "t3"."day",
  "t3"."size_class",
  "t3"."arm",
  "t3"."bucket",
  "t3"."bin";

-- units
SELECT
  "t1"."region" AS "region",
  "t1"."day" AS "day",
  "t1"."size_class" AS "size_class",
  "t1"."arm" AS "arm",
  "t1"."bucket" AS "bucket",
  "t1"."experiment" AS "experiment",
  COUNT(*) AS "rows",
  uniqExact("t1"."unit") AS "units"
FROM (
  SELECT
    CAST((
      (
        nullIf(
          POSITION(
            'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
            "t0"."service_country"
          ) - 1,
          -1
        ) + (
          ABS(CAST(LENGTH("t0"."service_country") AS Nullable(Int64)) - 2) * 1134
        )
      ) - (
        (
          nullIf(
            POSITION(
              'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
              "t0"."service_country"
            ) - 1,
            -1
          ) + (
            ABS(CAST(LENGTH("t0"."service_country") AS Nullable(Int64)) - 2) * 1134
          )
        ) % 189
      )
    ) / 189 AS Nullable(Int64)) AS "region",
    CAST((
      "t0"."service_start_unix_ns" - (
        "t0"."service_start_unix_ns" % 86400000000000
      )
    ) / 86400000000000 AS Nullable(Int64)) AS "day",
    CASE
      WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 100000
      THEN 0
      WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 1000000
      THEN 1
      WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 3000000
      THEN 2
      WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 10000000
      THEN 3
      WHEN isNotNull(COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered"))
      THEN 4
      ELSE CAST(NULL AS Nullable(Int64))
    END AS "size_class",
    "t0"."arm" AS "arm",
    "t0"."arm_bucket" AS "bucket",
    "t0"."arm_experiment" AS "experiment",
    "t0"."arm_unit" AS "unit"
  FROM "records" AS "t0"
  WHERE
    (
      (
        "t0"."service_scope" = 'response'
      )
      OR isNull("t0"."service_scope")
      OR (
        (
          "t0"."engine" = 'watch'
        ) AND (
          "t0"."service_scope" = 'connection'
        )
      )
    )
    AND "t0"."arm_experiment" = 'bbr-2026'
) AS "t1"
GROUP BY
  "t1"."region",
  "t1"."day",
  "t1"."size_class",
  "t1"."arm",
  "t1"."bucket",
  "t1"."experiment";

-- sources
SELECT
  "t1"."source" AS "source",
  COUNT(*) AS "rows"
FROM (
  SELECT
    COALESCE(
      "t0"."source",
      CASE
        WHEN "t0"."engine" IN ('sim', 'quic-sim', 'netns', 'play')
        THEN 'client'
        WHEN "t0"."engine" IN ('serve', 'watch')
        THEN 'acked'
        ELSE CAST(NULL AS Nullable(String))
      END
    ) AS "source"
  FROM "records" AS "t0"
  WHERE
    (
      (
        "t0"."service_scope" = 'response'
      )
      OR isNull("t0"."service_scope")
      OR (
        (
          "t0"."engine" = 'watch'
        ) AND (
          "t0"."service_scope" = 'connection'
        )
      )
    )
    AND "t0"."arm_experiment" = 'bbr-2026'
    AND isNotNull("t0"."arm")
    AND "t0"."arm_bucket" >= 0
    AND "t0"."arm_bucket" < 100
) AS "t1"
GROUP BY
  "t1"."source";

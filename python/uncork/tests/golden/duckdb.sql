-- throughput
SELECT
  "t3"."region",
  "t3"."day",
  "t3"."size_class",
  "t3"."arm",
  "t3"."bucket",
  "t3"."bin",
  SUM("t3"."n") AS "n"
FROM (
  SELECT
    "t2"."region",
    "t2"."day",
    "t2"."size_class",
    "t2"."arm",
    "t2"."bucket",
    "t2"."bin",
    CASE
      WHEN "t2"."bin" IS NULL
      THEN 1
      WHEN "t2"."unit" IS NULL
      THEN 1000000000
      ELSE CAST((
        1000000000 - (
          1000000000 % NULLIF(
            COUNT("t2"."bin") OVER (
              PARTITION BY "t2"."region", "t2"."day", "t2"."size_class", "t2"."arm", "t2"."unit"
              ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
            ),
            0
          )
        )
      ) / NULLIF(
        COUNT("t2"."bin") OVER (
          PARTITION BY "t2"."region", "t2"."day", "t2"."size_class", "t2"."arm", "t2"."unit"
          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
        ),
        0
      ) AS BIGINT)
    END AS "n"
  FROM (
    SELECT
      "t1"."region",
      "t1"."day",
      "t1"."size_class",
      "t1"."arm",
      "t1"."bucket",
      "t1"."unit",
      CASE
        WHEN NOT (
          (
            "t1"."x" >= 0.0
          ) AND (
            "t1"."x" < 1e+300
          )
        )
        THEN CAST(NULL AS BIGINT)
        WHEN "t1"."x" < 1000.0
        THEN 349
        WHEN "t1"."x" > 1000000000000.0
        THEN 1396
        ELSE CAST(CEIL(LN("t1"."x") / 0.01980262729617973) AS BIGINT)
      END AS "bin"
    FROM (
      SELECT
        CAST((
          (
            NULLIF(
              STRPOS(
                'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
                "t0"."service_country"
              ) - 1,
              -1
            ) + (
              ABS(CAST(LENGTH("t0"."service_country") AS BIGINT) - 2) * 1134
            )
          ) - (
            (
              NULLIF(
                STRPOS(
                  'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
                  "t0"."service_country"
                ) - 1,
                -1
              ) + (
                ABS(CAST(LENGTH("t0"."service_country") AS BIGINT) - 2) * 1134
              )
            ) % 189
          )
        ) / 189 AS BIGINT) AS "region",
        CAST((
          "t0"."service_start_unix_ns" - (
            "t0"."service_start_unix_ns" % 86400000000000
          )
        ) / 86400000000000 AS BIGINT) AS "day",
        CASE
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 100000
          THEN 0
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 1000000
          THEN 1
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 3000000
          THEN 2
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 10000000
          THEN 3
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") IS NOT NULL
          THEN 4
          ELSE CAST(NULL AS BIGINT)
        END AS "size_class",
        "t0"."arm",
        "t0"."arm_bucket" AS "bucket",
        "t0"."arm_unit" AS "unit",
        CASE
          WHEN (
            COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") >= 3000000
          )
          AND (
            "t0"."playback_items" IS NULL
          )
          AND COALESCE((
            "t0"."service_status" < 300
          ) OR "t0"."service_status" IN (460, 499), TRUE)
          THEN CASE
            WHEN (
              COALESCE(
                "t0"."source",
                CASE
                  WHEN "t0"."engine" IN ('sim', 'quic-sim', 'netns', 'play')
                  THEN 'client'
                  WHEN "t0"."engine" IN ('serve', 'watch')
                  THEN 'acked'
                  ELSE CAST(NULL AS TEXT)
                END
              ) <> 'acked'
            )
            AND (
              "t0"."completion_ns" IS NOT NULL
            )
            AND (
              "t0"."playback_items" IS NULL
            )
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
              CAST("t0"."bytes_delivered" AS DOUBLE) * 8000000000.0
            ) / CAST(NULLIF("t0"."completion_ns", 0) AS DOUBLE)
            ELSE (
              CAST("t0"."bytes_acked" AS DOUBLE) * 8000000000.0
            ) / CAST(NULLIF("t0"."busy_ns", 0) AS DOUBLE)
          END
          ELSE CAST(NULL AS DOUBLE)
        END AS "x"
      FROM "records" AS "t0"
      WHERE
        (
          (
            "t0"."service_scope" = 'response'
          )
          OR (
            "t0"."service_scope" IS NULL
          )
          OR (
            (
              "t0"."engine" = 'watch'
            ) AND (
              "t0"."service_scope" = 'connection'
            )
          )
        )
        AND "t0"."arm_experiment" = 'bbr-2026'
        AND "t0"."arm" IS NOT NULL
        AND "t0"."arm_bucket" >= 0
        AND "t0"."arm_bucket" < 100
    ) AS "t1"
    WHERE
      (
        "t1"."x" IS NOT NULL
      ) OR ISNAN("t1"."x")
  ) AS "t2"
) AS "t3"
GROUP BY
  1,
  2,
  3,
  4,
  5,
  6;

-- completion
SELECT
  "t3"."region",
  "t3"."day",
  "t3"."size_class",
  "t3"."arm",
  "t3"."bucket",
  "t3"."bin",
  SUM("t3"."n") AS "n"
FROM (
  SELECT
    "t2"."region",
    "t2"."day",
    "t2"."size_class",
    "t2"."arm",
    "t2"."bucket",
    "t2"."bin",
    CASE
      WHEN "t2"."bin" IS NULL
      THEN 1
      WHEN "t2"."unit" IS NULL
      THEN 1000000000
      ELSE CAST((
        1000000000 - (
          1000000000 % NULLIF(
            COUNT("t2"."bin") OVER (
              PARTITION BY "t2"."region", "t2"."day", "t2"."size_class", "t2"."arm", "t2"."unit"
              ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
            ),
            0
          )
        )
      ) / NULLIF(
        COUNT("t2"."bin") OVER (
          PARTITION BY "t2"."region", "t2"."day", "t2"."size_class", "t2"."arm", "t2"."unit"
          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
        ),
        0
      ) AS BIGINT)
    END AS "n"
  FROM (
    SELECT
      "t1"."region",
      "t1"."day",
      "t1"."size_class",
      "t1"."arm",
      "t1"."bucket",
      "t1"."unit",
      CASE
        WHEN NOT (
          (
            "t1"."x" >= 0.0
          ) AND (
            "t1"."x" < 1e+300
          )
        )
        THEN CAST(NULL AS BIGINT)
        WHEN "t1"."x" < 1e-06
        THEN -697
        WHEN "t1"."x" > 3600.0
        THEN 414
        ELSE CAST(CEIL(LN("t1"."x") / 0.01980262729617973) AS BIGINT)
      END AS "bin"
    FROM (
      SELECT
        CAST((
          (
            NULLIF(
              STRPOS(
                'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
                "t0"."service_country"
              ) - 1,
              -1
            ) + (
              ABS(CAST(LENGTH("t0"."service_country") AS BIGINT) - 2) * 1134
            )
          ) - (
            (
              NULLIF(
                STRPOS(
                  'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
                  "t0"."service_country"
                ) - 1,
                -1
              ) + (
                ABS(CAST(LENGTH("t0"."service_country") AS BIGINT) - 2) * 1134
              )
            ) % 189
          )
        ) / 189 AS BIGINT) AS "region",
        CAST((
          "t0"."service_start_unix_ns" - (
            "t0"."service_start_unix_ns" % 86400000000000
          )
        ) / 86400000000000 AS BIGINT) AS "day",
        CASE
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 100000
          THEN 0
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 1000000
          THEN 1
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 3000000
          THEN 2
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 10000000
          THEN 3
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") IS NOT NULL
          THEN 4
          ELSE CAST(NULL AS BIGINT)
        END AS "size_class",
        "t0"."arm",
        "t0"."arm_bucket" AS "bucket",
        "t0"."arm_unit" AS "unit",
        CASE
          WHEN (
            "t0"."size_bytes" < 3000000
          )
          AND COALESCE((
            "t0"."service_status" < 300
          ) OR "t0"."service_status" IN (460, 499), TRUE)
          THEN CASE
            WHEN COALESCE("t0"."service_broken_off" > 0, FALSE)
            OR (
              NOT (
                COALESCE("t0"."engine", '') IN ('sim', 'quic-sim', 'netns', 'play', 'serve', 'watch', 'bpf')
              )
              AND COALESCE("t0"."bytes_delivered" < "t0"."size_bytes", FALSE)
            )
            THEN 3600.0
            ELSE COALESCE(CAST("t0"."completion_ns" AS DOUBLE) / 1000000000.0, 3600.0)
          END
          ELSE CAST(NULL AS DOUBLE)
        END AS "x"
      FROM "records" AS "t0"
      WHERE
        (
          (
            "t0"."service_scope" = 'response'
          )
          OR (
            "t0"."service_scope" IS NULL
          )
          OR (
            (
              "t0"."engine" = 'watch'
            ) AND (
              "t0"."service_scope" = 'connection'
            )
          )
        )
        AND "t0"."arm_experiment" = 'bbr-2026'
        AND "t0"."arm" IS NOT NULL
        AND "t0"."arm_bucket" >= 0
        AND "t0"."arm_bucket" < 100
    ) AS "t1"
    WHERE
      (
        "t1"."x" IS NOT NULL
      ) OR ISNAN("t1"."x")
  ) AS "t2"
) AS "t3"
GROUP BY
  1,
  2,
  3,
  4,
  5,
  6;

-- first_byte
SELECT
  "t3"."region",
  "t3"."day",
  "t3"."size_class",
  "t3"."arm",
  "t3"."bucket",
  "t3"."bin",
  SUM("t3"."n") AS "n"
FROM (
  SELECT
    "t2"."region",
    "t2"."day",
    "t2"."size_class",
    "t2"."arm",
    "t2"."bucket",
    "t2"."bin",
    CASE
      WHEN "t2"."bin" IS NULL
      THEN 1
      WHEN "t2"."unit" IS NULL
      THEN 1000000000
      ELSE CAST((
        1000000000 - (
          1000000000 % NULLIF(
            COUNT("t2"."bin") OVER (
              PARTITION BY "t2"."region", "t2"."day", "t2"."size_class", "t2"."arm", "t2"."unit"
              ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
            ),
            0
          )
        )
      ) / NULLIF(
        COUNT("t2"."bin") OVER (
          PARTITION BY "t2"."region", "t2"."day", "t2"."size_class", "t2"."arm", "t2"."unit"
          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
        ),
        0
      ) AS BIGINT)
    END AS "n"
  FROM (
    SELECT
      "t1"."region",
      "t1"."day",
      "t1"."size_class",
      "t1"."arm",
      "t1"."bucket",
      "t1"."unit",
      CASE
        WHEN NOT (
          (
            "t1"."x" >= 0.0
          ) AND (
            "t1"."x" < 1e+300
          )
        )
        THEN CAST(NULL AS BIGINT)
        WHEN "t1"."x" < 1e-06
        THEN -697
        WHEN "t1"."x" > 3600.0
        THEN 414
        ELSE CAST(CEIL(LN("t1"."x") / 0.01980262729617973) AS BIGINT)
      END AS "bin"
    FROM (
      SELECT
        CAST((
          (
            NULLIF(
              STRPOS(
                'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
                "t0"."service_country"
              ) - 1,
              -1
            ) + (
              ABS(CAST(LENGTH("t0"."service_country") AS BIGINT) - 2) * 1134
            )
          ) - (
            (
              NULLIF(
                STRPOS(
                  'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
                  "t0"."service_country"
                ) - 1,
                -1
              ) + (
                ABS(CAST(LENGTH("t0"."service_country") AS BIGINT) - 2) * 1134
              )
            ) % 189
          )
        ) / 189 AS BIGINT) AS "region",
        CAST((
          "t0"."service_start_unix_ns" - (
            "t0"."service_start_unix_ns" % 86400000000000
          )
        ) / 86400000000000 AS BIGINT) AS "day",
        CASE
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 100000
          THEN 0
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 1000000
          THEN 1
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 3000000
          THEN 2
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 10000000
          THEN 3
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") IS NOT NULL
          THEN 4
          ELSE CAST(NULL AS BIGINT)
        END AS "size_class",
        "t0"."arm",
        "t0"."arm_bucket" AS "bucket",
        "t0"."arm_unit" AS "unit",
        CASE
          WHEN COALESCE((
            "t0"."service_status" < 300
          ) OR "t0"."service_status" IN (460, 499), TRUE)
          THEN CAST("t0"."first_byte_ns" AS DOUBLE) / 1000000000.0
          ELSE CAST(NULL AS DOUBLE)
        END AS "x"
      FROM "records" AS "t0"
      WHERE
        (
          (
            "t0"."service_scope" = 'response'
          )
          OR (
            "t0"."service_scope" IS NULL
          )
          OR (
            (
              "t0"."engine" = 'watch'
            ) AND (
              "t0"."service_scope" = 'connection'
            )
          )
        )
        AND "t0"."arm_experiment" = 'bbr-2026'
        AND "t0"."arm" IS NOT NULL
        AND "t0"."arm_bucket" >= 0
        AND "t0"."arm_bucket" < 100
    ) AS "t1"
    WHERE
      (
        "t1"."x" IS NOT NULL
      ) OR ISNAN("t1"."x")
  ) AS "t2"
) AS "t3"
GROUP BY
  1,
  2,
  3,
  4,
  5,
  6;

-- retransmitted
SELECT
  "t1"."region",
  "t1"."day",
  "t1"."size_class",
  "t1"."arm",
  "t1"."bucket",
  COALESCE(
    SUM("t1"."numerator") FILTER(WHERE
      (
        "t1"."numerator" >= 0
      ) AND (
        "t1"."denominator" >= 0
      )),
    0
  ) AS "numerator",
  COALESCE(
    SUM("t1"."denominator") FILTER(WHERE
      (
        "t1"."numerator" >= 0
      ) AND (
        "t1"."denominator" >= 0
      )),
    0
  ) AS "denominator",
  COUNT(*) FILTER(WHERE
    NOT (
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
        NULLIF(
          STRPOS(
            'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
            "t0"."service_country"
          ) - 1,
          -1
        ) + (
          ABS(CAST(LENGTH("t0"."service_country") AS BIGINT) - 2) * 1134
        )
      ) - (
        (
          NULLIF(
            STRPOS(
              'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
              "t0"."service_country"
            ) - 1,
            -1
          ) + (
            ABS(CAST(LENGTH("t0"."service_country") AS BIGINT) - 2) * 1134
          )
        ) % 189
      )
    ) / 189 AS BIGINT) AS "region",
    CAST((
      "t0"."service_start_unix_ns" - (
        "t0"."service_start_unix_ns" % 86400000000000
      )
    ) / 86400000000000 AS BIGINT) AS "day",
    CASE
      WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 100000
      THEN 0
      WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 1000000
      THEN 1
      WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 3000000
      THEN 2
      WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 10000000
      THEN 3
      WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") IS NOT NULL
      THEN 4
      ELSE CAST(NULL AS BIGINT)
    END AS "size_class",
    "t0"."arm",
    "t0"."arm_bucket" AS "bucket",
    "t0"."bytes_retransmitted" AS "numerator",
    "t0"."bytes_sent" AS "denominator"
  FROM "records" AS "t0"
  WHERE
    (
      (
        "t0"."service_scope" = 'response'
      )
      OR (
        "t0"."service_scope" IS NULL
      )
      OR (
        (
          "t0"."engine" = 'watch'
        ) AND (
          "t0"."service_scope" = 'connection'
        )
      )
    )
    AND "t0"."arm_experiment" = 'bbr-2026'
    AND "t0"."arm" IS NOT NULL
    AND "t0"."arm_bucket" >= 0
    AND "t0"."arm_bucket" < 100
    AND "t0"."bytes_retransmitted" IS NOT NULL
    AND "t0"."bytes_sent" IS NOT NULL
) AS "t1"
GROUP BY
  1,
  2,
  3,
  4,
  5;

-- rtt_inflation
SELECT
  "t3"."region",
  "t3"."day",
  "t3"."size_class",
  "t3"."arm",
  "t3"."bucket",
  "t3"."bin",
  SUM("t3"."n") AS "n"
FROM (
  SELECT
    "t2"."region",
    "t2"."day",
    "t2"."size_class",
    "t2"."arm",
    "t2"."bucket",
    "t2"."bin",
    CASE
      WHEN "t2"."bin" IS NULL
      THEN 1
      WHEN "t2"."unit" IS NULL
      THEN 1000000000
      ELSE CAST((
        1000000000 - (
          1000000000 % NULLIF(
            COUNT("t2"."bin") OVER (
              PARTITION BY "t2"."region", "t2"."day", "t2"."size_class", "t2"."arm", "t2"."unit"
              ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
            ),
            0
          )
        )
      ) / NULLIF(
        COUNT("t2"."bin") OVER (
          PARTITION BY "t2"."region", "t2"."day", "t2"."size_class", "t2"."arm", "t2"."unit"
          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
        ),
        0
      ) AS BIGINT)
    END AS "n"
  FROM (
    SELECT
      "t1"."region",
      "t1"."day",
      "t1"."size_class",
      "t1"."arm",
      "t1"."bucket",
      "t1"."unit",
      CASE
        WHEN NOT (
          (
            "t1"."x" >= 0.0
          ) AND (
            "t1"."x" < 1e+300
          )
        )
        THEN CAST(NULL AS BIGINT)
        WHEN "t1"."x" < 0.01
        THEN -232
        WHEN "t1"."x" > 100000.0
        THEN 582
        ELSE CAST(CEIL(LN("t1"."x") / 0.01980262729617973) AS BIGINT)
      END AS "bin"
    FROM (
      SELECT
        CAST((
          (
            NULLIF(
              STRPOS(
                'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
                "t0"."service_country"
              ) - 1,
              -1
            ) + (
              ABS(CAST(LENGTH("t0"."service_country") AS BIGINT) - 2) * 1134
            )
          ) - (
            (
              NULLIF(
                STRPOS(
                  'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
                  "t0"."service_country"
                ) - 1,
                -1
              ) + (
                ABS(CAST(LENGTH("t0"."service_country") AS BIGINT) - 2) * 1134
              )
            ) % 189
          )
        ) / 189 AS BIGINT) AS "region",
        CAST((
          "t0"."service_start_unix_ns" - (
            "t0"."service_start_unix_ns" % 86400000000000
          )
        ) / 86400000000000 AS BIGINT) AS "day",
        CASE
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 100000
          THEN 0
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 1000000
          THEN 1
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 3000000
          THEN 2
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 10000000
          THEN 3
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") IS NOT NULL
          THEN 4
          ELSE CAST(NULL AS BIGINT)
        END AS "size_class",
        "t0"."arm",
        "t0"."arm_bucket" AS "bucket",
        "t0"."arm_unit" AS "unit",
        "t0"."rtt_p50_ms" / NULLIF("t0"."rtt_min_ms", 0.0) AS "x"
      FROM "records" AS "t0"
      WHERE
        (
          (
            "t0"."service_scope" = 'response'
          )
          OR (
            "t0"."service_scope" IS NULL
          )
          OR (
            (
              "t0"."engine" = 'watch'
            ) AND (
              "t0"."service_scope" = 'connection'
            )
          )
        )
        AND "t0"."arm_experiment" = 'bbr-2026'
        AND "t0"."arm" IS NOT NULL
        AND "t0"."arm_bucket" >= 0
        AND "t0"."arm_bucket" < 100
        AND (
          (
            (
              "t0"."rtt_p50_ms" / NULLIF("t0"."rtt_min_ms", 0.0)
            ) IS NOT NULL
          )
          OR ISNAN("t0"."rtt_p50_ms" / NULLIF("t0"."rtt_min_ms", 0.0))
        )
    ) AS "t1"
  ) AS "t2"
) AS "t3"
GROUP BY
  1,
  2,
  3,
  4,
  5,
  6;

-- queue_delay
SELECT
  "t3"."region",
  "t3"."day",
  "t3"."size_class",
  "t3"."arm",
  "t3"."bucket",
  "t3"."bin",
  SUM("t3"."n") AS "n"
FROM (
  SELECT
    "t2"."region",
    "t2"."day",
    "t2"."size_class",
    "t2"."arm",
    "t2"."bucket",
    "t2"."bin",
    CASE
      WHEN "t2"."bin" IS NULL
      THEN 1
      WHEN "t2"."unit" IS NULL
      THEN 1000000000
      ELSE CAST((
        1000000000 - (
          1000000000 % NULLIF(
            COUNT("t2"."bin") OVER (
              PARTITION BY "t2"."region", "t2"."day", "t2"."size_class", "t2"."arm", "t2"."unit"
              ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
            ),
            0
          )
        )
      ) / NULLIF(
        COUNT("t2"."bin") OVER (
          PARTITION BY "t2"."region", "t2"."day", "t2"."size_class", "t2"."arm", "t2"."unit"
          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
        ),
        0
      ) AS BIGINT)
    END AS "n"
  FROM (
    SELECT
      "t1"."region",
      "t1"."day",
      "t1"."size_class",
      "t1"."arm",
      "t1"."bucket",
      "t1"."unit",
      CASE
        WHEN NOT (
          (
            "t1"."x" >= 0.0
          ) AND (
            "t1"."x" < 1e+300
          )
        )
        THEN CAST(NULL AS BIGINT)
        WHEN "t1"."x" < 1e-05
        THEN -581
        WHEN "t1"."x" > 3600.0
        THEN 414
        ELSE CAST(CEIL(LN("t1"."x") / 0.01980262729617973) AS BIGINT)
      END AS "bin"
    FROM (
      SELECT
        CAST((
          (
            NULLIF(
              STRPOS(
                'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
                "t0"."service_country"
              ) - 1,
              -1
            ) + (
              ABS(CAST(LENGTH("t0"."service_country") AS BIGINT) - 2) * 1134
            )
          ) - (
            (
              NULLIF(
                STRPOS(
                  'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
                  "t0"."service_country"
                ) - 1,
                -1
              ) + (
                ABS(CAST(LENGTH("t0"."service_country") AS BIGINT) - 2) * 1134
              )
            ) % 189
          )
        ) / 189 AS BIGINT) AS "region",
        CAST((
          "t0"."service_start_unix_ns" - (
            "t0"."service_start_unix_ns" % 86400000000000
          )
        ) / 86400000000000 AS BIGINT) AS "day",
        CASE
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 100000
          THEN 0
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 1000000
          THEN 1
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 3000000
          THEN 2
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 10000000
          THEN 3
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") IS NOT NULL
          THEN 4
          ELSE CAST(NULL AS BIGINT)
        END AS "size_class",
        "t0"."arm",
        "t0"."arm_bucket" AS "bucket",
        "t0"."arm_unit" AS "unit",
        CASE
          WHEN (
            "t0"."rtt_p50_ms" - "t0"."rtt_min_ms"
          ) / 1000.0 BETWEEN 0.0 AND 1e-05
          THEN 1e-05
          ELSE (
            "t0"."rtt_p50_ms" - "t0"."rtt_min_ms"
          ) / 1000.0
        END AS "x"
      FROM "records" AS "t0"
      WHERE
        (
          (
            "t0"."service_scope" = 'response'
          )
          OR (
            "t0"."service_scope" IS NULL
          )
          OR (
            (
              "t0"."engine" = 'watch'
            ) AND (
              "t0"."service_scope" = 'connection'
            )
          )
        )
        AND "t0"."arm_experiment" = 'bbr-2026'
        AND "t0"."arm" IS NOT NULL
        AND "t0"."arm_bucket" >= 0
        AND "t0"."arm_bucket" < 100
    ) AS "t1"
    WHERE
      (
        "t1"."x" IS NOT NULL
      ) OR ISNAN("t1"."x")
  ) AS "t2"
) AS "t3"
GROUP BY
  1,
  2,
  3,
  4,
  5,
  6;

-- early_resent
SELECT
  "t1"."region",
  "t1"."day",
  "t1"."size_class",
  "t1"."arm",
  "t1"."bucket",
  COALESCE(
    SUM("t1"."numerator") FILTER(WHERE
      (
        "t1"."numerator" >= 0
      ) AND (
        "t1"."denominator" >= 0
      )),
    0
  ) AS "numerator",
  COALESCE(
    SUM("t1"."denominator") FILTER(WHERE
      (
        "t1"."numerator" >= 0
      ) AND (
        "t1"."denominator" >= 0
      )),
    0
  ) AS "denominator",
  COUNT(*) FILTER(WHERE
    NOT (
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
        NULLIF(
          STRPOS(
            'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
            "t0"."service_country"
          ) - 1,
          -1
        ) + (
          ABS(CAST(LENGTH("t0"."service_country") AS BIGINT) - 2) * 1134
        )
      ) - (
        (
          NULLIF(
            STRPOS(
              'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
              "t0"."service_country"
            ) - 1,
            -1
          ) + (
            ABS(CAST(LENGTH("t0"."service_country") AS BIGINT) - 2) * 1134
          )
        ) % 189
      )
    ) / 189 AS BIGINT) AS "region",
    CAST((
      "t0"."service_start_unix_ns" - (
        "t0"."service_start_unix_ns" % 86400000000000
      )
    ) / 86400000000000 AS BIGINT) AS "day",
    CASE
      WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 100000
      THEN 0
      WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 1000000
      THEN 1
      WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 3000000
      THEN 2
      WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 10000000
      THEN 3
      WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") IS NOT NULL
      THEN 4
      ELSE CAST(NULL AS BIGINT)
    END AS "size_class",
    "t0"."arm",
    "t0"."arm_bucket" AS "bucket",
    "t0"."start_early_resent_bytes" AS "numerator",
    "t0"."start_early_sent_bytes" AS "denominator"
  FROM "records" AS "t0"
  WHERE
    (
      (
        "t0"."service_scope" = 'response'
      )
      OR (
        "t0"."service_scope" IS NULL
      )
      OR (
        (
          "t0"."engine" = 'watch'
        ) AND (
          "t0"."service_scope" = 'connection'
        )
      )
    )
    AND "t0"."arm_experiment" = 'bbr-2026'
    AND "t0"."arm" IS NOT NULL
    AND "t0"."arm_bucket" >= 0
    AND "t0"."arm_bucket" < 100
    AND "t0"."start_early_resent_bytes" IS NOT NULL
    AND "t0"."start_early_sent_bytes" IS NOT NULL
) AS "t1"
GROUP BY
  1,
  2,
  3,
  4,
  5;

-- start_lost
SELECT
  "t1"."region",
  "t1"."day",
  "t1"."size_class",
  "t1"."arm",
  "t1"."bucket",
  COALESCE(
    SUM("t1"."numerator") FILTER(WHERE
      (
        "t1"."numerator" >= 0
      ) AND (
        "t1"."denominator" >= 0
      )),
    0
  ) AS "numerator",
  COALESCE(
    SUM("t1"."denominator") FILTER(WHERE
      (
        "t1"."numerator" >= 0
      ) AND (
        "t1"."denominator" >= 0
      )),
    0
  ) AS "denominator",
  COUNT(*) FILTER(WHERE
    NOT (
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
        NULLIF(
          STRPOS(
            'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
            "t0"."service_country"
          ) - 1,
          -1
        ) + (
          ABS(CAST(LENGTH("t0"."service_country") AS BIGINT) - 2) * 1134
        )
      ) - (
        (
          NULLIF(
            STRPOS(
              'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
              "t0"."service_country"
            ) - 1,
            -1
          ) + (
            ABS(CAST(LENGTH("t0"."service_country") AS BIGINT) - 2) * 1134
          )
        ) % 189
      )
    ) / 189 AS BIGINT) AS "region",
    CAST((
      "t0"."service_start_unix_ns" - (
        "t0"."service_start_unix_ns" % 86400000000000
      )
    ) / 86400000000000 AS BIGINT) AS "day",
    CASE
      WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 100000
      THEN 0
      WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 1000000
      THEN 1
      WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 3000000
      THEN 2
      WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 10000000
      THEN 3
      WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") IS NOT NULL
      THEN 4
      ELSE CAST(NULL AS BIGINT)
    END AS "size_class",
    "t0"."arm",
    "t0"."arm_bucket" AS "bucket",
    "t0"."start_lost_bytes" AS "numerator",
    "t0"."start_sent_bytes" AS "denominator"
  FROM "records" AS "t0"
  WHERE
    (
      (
        "t0"."service_scope" = 'response'
      )
      OR (
        "t0"."service_scope" IS NULL
      )
      OR (
        (
          "t0"."engine" = 'watch'
        ) AND (
          "t0"."service_scope" = 'connection'
        )
      )
    )
    AND "t0"."arm_experiment" = 'bbr-2026'
    AND "t0"."arm" IS NOT NULL
    AND "t0"."arm_bucket" >= 0
    AND "t0"."arm_bucket" < 100
    AND "t0"."start_lost_bytes" IS NOT NULL
    AND "t0"."start_sent_bytes" IS NOT NULL
) AS "t1"
GROUP BY
  1,
  2,
  3,
  4,
  5;

-- start_rounds
SELECT
  "t2"."region",
  "t2"."day",
  "t2"."size_class",
  "t2"."arm",
  "t2"."bucket",
  "t2"."bin",
  SUM("t2"."n") AS "n"
FROM (
  SELECT
    "t1"."region",
    "t1"."day",
    "t1"."size_class",
    "t1"."arm",
    "t1"."bucket",
    "t1"."bin",
    CASE
      WHEN "t1"."bin" IS NULL
      THEN 1
      WHEN "t1"."unit" IS NULL
      THEN 1000000000
      ELSE CAST((
        1000000000 - (
          1000000000 % NULLIF(
            COUNT("t1"."bin") OVER (
              PARTITION BY "t1"."region", "t1"."day", "t1"."size_class", "t1"."arm", "t1"."unit"
              ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
            ),
            0
          )
        )
      ) / NULLIF(
        COUNT("t1"."bin") OVER (
          PARTITION BY "t1"."region", "t1"."day", "t1"."size_class", "t1"."arm", "t1"."unit"
          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
        ),
        0
      ) AS BIGINT)
    END AS "n"
  FROM (
    SELECT
      CAST((
        (
          NULLIF(
            STRPOS(
              'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
              "t0"."service_country"
            ) - 1,
            -1
          ) + (
            ABS(CAST(LENGTH("t0"."service_country") AS BIGINT) - 2) * 1134
          )
        ) - (
          (
            NULLIF(
              STRPOS(
                'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
                "t0"."service_country"
              ) - 1,
              -1
            ) + (
              ABS(CAST(LENGTH("t0"."service_country") AS BIGINT) - 2) * 1134
            )
          ) % 189
        )
      ) / 189 AS BIGINT) AS "region",
      CAST((
        "t0"."service_start_unix_ns" - (
          "t0"."service_start_unix_ns" % 86400000000000
        )
      ) / 86400000000000 AS BIGINT) AS "day",
      CASE
        WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 100000
        THEN 0
        WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 1000000
        THEN 1
        WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 3000000
        THEN 2
        WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 10000000
        THEN 3
        WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") IS NOT NULL
        THEN 4
        ELSE CAST(NULL AS BIGINT)
      END AS "size_class",
      "t0"."arm",
      "t0"."arm_bucket" AS "bucket",
      "t0"."arm_unit" AS "unit",
      CASE
        WHEN NOT (
          (
            CAST("t0"."start_rounds_to_100kb" AS DOUBLE) >= 0.0
          )
          AND (
            CAST("t0"."start_rounds_to_100kb" AS DOUBLE) < 1e+300
          )
        )
        THEN CAST(NULL AS BIGINT)
        WHEN CAST("t0"."start_rounds_to_100kb" AS DOUBLE) < 1.0
        THEN 0
        WHEN CAST("t0"."start_rounds_to_100kb" AS DOUBLE) > 10000.0
        THEN 466
        ELSE CAST(CEIL(LN(CAST("t0"."start_rounds_to_100kb" AS DOUBLE)) / 0.01980262729617973) AS BIGINT)
      END AS "bin"
    FROM "records" AS "t0"
    WHERE
      (
        (
          "t0"."service_scope" = 'response'
        )
        OR (
          "t0"."service_scope" IS NULL
        )
        OR (
          (
            "t0"."engine" = 'watch'
          ) AND (
            "t0"."service_scope" = 'connection'
          )
        )
      )
      AND "t0"."arm_experiment" = 'bbr-2026'
      AND "t0"."arm" IS NOT NULL
      AND "t0"."arm_bucket" >= 0
      AND "t0"."arm_bucket" < 100
      AND (
        (
          CAST("t0"."start_rounds_to_100kb" AS DOUBLE) IS NOT NULL
        )
        OR ISNAN(CAST("t0"."start_rounds_to_100kb" AS DOUBLE))
      )
  ) AS "t1"
) AS "t2"
GROUP BY
  1,
  2,
  3,
  4,
  5,
  6;

-- aborted
SELECT
  "t2"."region",
  "t2"."day",
  "t2"."size_class",
  "t2"."arm",
  "t2"."bucket",
  COALESCE(
    SUM("t2"."numerator") FILTER(WHERE
      (
        "t2"."numerator" >= 0
      ) AND (
        "t2"."denominator" >= 0
      )),
    0
  ) AS "numerator",
  COALESCE(
    SUM("t2"."denominator") FILTER(WHERE
      (
        "t2"."numerator" >= 0
      ) AND (
        "t2"."denominator" >= 0
      )),
    0
  ) AS "denominator",
  COUNT(*) FILTER(WHERE
    NOT (
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
          NULLIF(
            STRPOS(
              'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
              "t0"."service_country"
            ) - 1,
            -1
          ) + (
            ABS(CAST(LENGTH("t0"."service_country") AS BIGINT) - 2) * 1134
          )
        ) - (
          (
            NULLIF(
              STRPOS(
                'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
                "t0"."service_country"
              ) - 1,
              -1
            ) + (
              ABS(CAST(LENGTH("t0"."service_country") AS BIGINT) - 2) * 1134
            )
          ) % 189
        )
      ) / 189 AS BIGINT) AS "region",
      CAST((
        "t0"."service_start_unix_ns" - (
          "t0"."service_start_unix_ns" % 86400000000000
        )
      ) / 86400000000000 AS BIGINT) AS "day",
      CASE
        WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 100000
        THEN 0
        WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 1000000
        THEN 1
        WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 3000000
        THEN 2
        WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 10000000
        THEN 3
        WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") IS NOT NULL
        THEN 4
        ELSE CAST(NULL AS BIGINT)
      END AS "size_class",
      "t0"."arm",
      "t0"."arm_bucket" AS "bucket",
      CASE
        WHEN NOT (
          COALESCE("t0"."engine", '') IN ('sim', 'quic-sim', 'netns', 'play', 'serve', 'watch', 'bpf')
        )
        AND (
          "t0"."bytes_delivered" IS NOT NULL
        )
        AND (
          "t0"."size_bytes" IS NOT NULL
        )
        THEN GREATEST(
          COALESCE("t0"."service_broken_off", 0),
          CAST(COALESCE("t0"."service_broken_off" > 0, FALSE)
          OR (
            NOT (
              COALESCE("t0"."engine", '') IN ('sim', 'quic-sim', 'netns', 'play', 'serve', 'watch', 'bpf')
            )
            AND COALESCE("t0"."bytes_delivered" < "t0"."size_bytes", FALSE)
          ) AS BIGINT)
        )
        ELSE "t0"."service_broken_off"
      END AS "numerator",
      CASE
        WHEN NOT (
          COALESCE("t0"."engine", '') IN ('sim', 'quic-sim', 'netns', 'play', 'serve', 'watch', 'bpf')
        )
        AND (
          "t0"."bytes_delivered" IS NOT NULL
        )
        AND (
          "t0"."size_bytes" IS NOT NULL
        )
        THEN GREATEST(
          COALESCE("t0"."service_responses", 1),
          CAST(COALESCE("t0"."service_broken_off" > 0, FALSE)
          OR (
            NOT (
              COALESCE("t0"."engine", '') IN ('sim', 'quic-sim', 'netns', 'play', 'serve', 'watch', 'bpf')
            )
            AND COALESCE("t0"."bytes_delivered" < "t0"."size_bytes", FALSE)
          ) AS BIGINT)
        )
        ELSE "t0"."service_responses"
      END AS "denominator"
    FROM "records" AS "t0"
    WHERE
      (
        (
          "t0"."service_scope" = 'response'
        )
        OR (
          "t0"."service_scope" IS NULL
        )
        OR (
          (
            "t0"."engine" = 'watch'
          ) AND (
            "t0"."service_scope" = 'connection'
          )
        )
      )
      AND "t0"."arm_experiment" = 'bbr-2026'
      AND "t0"."arm" IS NOT NULL
      AND "t0"."arm_bucket" >= 0
      AND "t0"."arm_bucket" < 100
  ) AS "t1"
  WHERE
    "t1"."numerator" IS NOT NULL AND "t1"."denominator" IS NOT NULL
) AS "t2"
GROUP BY
  1,
  2,
  3,
  4,
  5;

-- failed
SELECT
  "t2"."region",
  "t2"."day",
  "t2"."size_class",
  "t2"."arm",
  "t2"."bucket",
  COALESCE(
    SUM("t2"."numerator") FILTER(WHERE
      (
        "t2"."numerator" >= 0
      ) AND (
        "t2"."denominator" >= 0
      )),
    0
  ) AS "numerator",
  COALESCE(
    SUM("t2"."denominator") FILTER(WHERE
      (
        "t2"."numerator" >= 0
      ) AND (
        "t2"."denominator" >= 0
      )),
    0
  ) AS "denominator",
  COUNT(*) FILTER(WHERE
    NOT (
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
          NULLIF(
            STRPOS(
              'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
              "t0"."service_country"
            ) - 1,
            -1
          ) + (
            ABS(CAST(LENGTH("t0"."service_country") AS BIGINT) - 2) * 1134
          )
        ) - (
          (
            NULLIF(
              STRPOS(
                'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
                "t0"."service_country"
              ) - 1,
              -1
            ) + (
              ABS(CAST(LENGTH("t0"."service_country") AS BIGINT) - 2) * 1134
            )
          ) % 189
        )
      ) / 189 AS BIGINT) AS "region",
      CAST((
        "t0"."service_start_unix_ns" - (
          "t0"."service_start_unix_ns" % 86400000000000
        )
      ) / 86400000000000 AS BIGINT) AS "day",
      CASE
        WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 100000
        THEN 0
        WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 1000000
        THEN 1
        WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 3000000
        THEN 2
        WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 10000000
        THEN 3
        WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") IS NOT NULL
        THEN 4
        ELSE CAST(NULL AS BIGINT)
      END AS "size_class",
      "t0"."arm",
      "t0"."arm_bucket" AS "bucket",
      CAST((
        "t0"."service_status" >= 400
      )
      AND NOT (
        "t0"."service_status" IN (460, 499)
      ) AS BIGINT) AS "numerator",
      CASE WHEN "t0"."service_status" IS NOT NULL THEN 1 ELSE CAST(NULL AS BIGINT) END AS "denominator"
    FROM "records" AS "t0"
    WHERE
      (
        (
          "t0"."service_scope" = 'response'
        )
        OR (
          "t0"."service_scope" IS NULL
        )
        OR (
          (
            "t0"."engine" = 'watch'
          ) AND (
            "t0"."service_scope" = 'connection'
          )
        )
      )
      AND "t0"."arm_experiment" = 'bbr-2026'
      AND "t0"."arm" IS NOT NULL
      AND "t0"."arm_bucket" >= 0
      AND "t0"."arm_bucket" < 100
  ) AS "t1"
  WHERE
    "t1"."numerator" IS NOT NULL AND "t1"."denominator" IS NOT NULL
) AS "t2"
GROUP BY
  1,
  2,
  3,
  4,
  5;

-- playback_latency
SELECT
  "t3"."region",
  "t3"."day",
  "t3"."size_class",
  "t3"."arm",
  "t3"."bucket",
  "t3"."bin",
  SUM("t3"."n") AS "n"
FROM (
  SELECT
    "t2"."region",
    "t2"."day",
    "t2"."size_class",
    "t2"."arm",
    "t2"."bucket",
    "t2"."bin",
    CASE
      WHEN "t2"."bin" IS NULL
      THEN 1
      WHEN "t2"."unit" IS NULL
      THEN 1000000000
      ELSE CAST((
        1000000000 - (
          1000000000 % NULLIF(
            COUNT("t2"."bin") OVER (
              PARTITION BY "t2"."region", "t2"."day", "t2"."size_class", "t2"."arm", "t2"."unit"
              ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
            ),
            0
          )
        )
      ) / NULLIF(
        COUNT("t2"."bin") OVER (
          PARTITION BY "t2"."region", "t2"."day", "t2"."size_class", "t2"."arm", "t2"."unit"
          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
        ),
        0
      ) AS BIGINT)
    END AS "n"
  FROM (
    SELECT
      "t1"."region",
      "t1"."day",
      "t1"."size_class",
      "t1"."arm",
      "t1"."bucket",
      "t1"."unit",
      CASE
        WHEN NOT (
          (
            "t1"."x" >= 0.0
          ) AND (
            "t1"."x" < 1e+300
          )
        )
        THEN CAST(NULL AS BIGINT)
        WHEN "t1"."x" < 1e-06
        THEN -697
        WHEN "t1"."x" > 3600.0
        THEN 414
        ELSE CAST(CEIL(LN("t1"."x") / 0.01980262729617973) AS BIGINT)
      END AS "bin"
    FROM (
      SELECT
        CAST((
          (
            NULLIF(
              STRPOS(
                'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
                "t0"."service_country"
              ) - 1,
              -1
            ) + (
              ABS(CAST(LENGTH("t0"."service_country") AS BIGINT) - 2) * 1134
            )
          ) - (
            (
              NULLIF(
                STRPOS(
                  'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
                  "t0"."service_country"
                ) - 1,
                -1
              ) + (
                ABS(CAST(LENGTH("t0"."service_country") AS BIGINT) - 2) * 1134
              )
            ) % 189
          )
        ) / 189 AS BIGINT) AS "region",
        CAST((
          "t0"."service_start_unix_ns" - (
            "t0"."service_start_unix_ns" % 86400000000000
          )
        ) / 86400000000000 AS BIGINT) AS "day",
        CASE
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 100000
          THEN 0
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 1000000
          THEN 1
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 3000000
          THEN 2
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 10000000
          THEN 3
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") IS NOT NULL
          THEN 4
          ELSE CAST(NULL AS BIGINT)
        END AS "size_class",
        "t0"."arm",
        "t0"."arm_bucket" AS "bucket",
        "t0"."arm_unit" AS "unit",
        CASE
          WHEN "t0"."playback_items" IS NOT NULL
          THEN COALESCE(CAST("t0"."playback_startup_ns" AS DOUBLE) / 1000000000.0, 3600.0)
          ELSE CAST(NULL AS DOUBLE)
        END AS "x"
      FROM "records" AS "t0"
      WHERE
        (
          (
            "t0"."service_scope" = 'response'
          )
          OR (
            "t0"."service_scope" IS NULL
          )
          OR (
            (
              "t0"."engine" = 'watch'
            ) AND (
              "t0"."service_scope" = 'connection'
            )
          )
        )
        AND "t0"."arm_experiment" = 'bbr-2026'
        AND "t0"."arm" IS NOT NULL
        AND "t0"."arm_bucket" >= 0
        AND "t0"."arm_bucket" < 100
    ) AS "t1"
    WHERE
      (
        "t1"."x" IS NOT NULL
      ) OR ISNAN("t1"."x")
  ) AS "t2"
) AS "t3"
GROUP BY
  1,
  2,
  3,
  4,
  5,
  6;

-- stutters
SELECT
  "t1"."region",
  "t1"."day",
  "t1"."size_class",
  "t1"."arm",
  "t1"."bucket",
  COALESCE(
    SUM("t1"."numerator") FILTER(WHERE
      (
        "t1"."numerator" >= 0
      ) AND (
        "t1"."denominator" >= 0
      )),
    0
  ) AS "numerator",
  COALESCE(
    SUM("t1"."denominator") FILTER(WHERE
      (
        "t1"."numerator" >= 0
      ) AND (
        "t1"."denominator" >= 0
      )),
    0
  ) AS "denominator",
  COUNT(*) FILTER(WHERE
    NOT (
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
        NULLIF(
          STRPOS(
            'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
            "t0"."service_country"
          ) - 1,
          -1
        ) + (
          ABS(CAST(LENGTH("t0"."service_country") AS BIGINT) - 2) * 1134
        )
      ) - (
        (
          NULLIF(
            STRPOS(
              'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
              "t0"."service_country"
            ) - 1,
            -1
          ) + (
            ABS(CAST(LENGTH("t0"."service_country") AS BIGINT) - 2) * 1134
          )
        ) % 189
      )
    ) / 189 AS BIGINT) AS "region",
    CAST((
      "t0"."service_start_unix_ns" - (
        "t0"."service_start_unix_ns" % 86400000000000
      )
    ) / 86400000000000 AS BIGINT) AS "day",
    CASE
      WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 100000
      THEN 0
      WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 1000000
      THEN 1
      WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 3000000
      THEN 2
      WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 10000000
      THEN 3
      WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") IS NOT NULL
      THEN 4
      ELSE CAST(NULL AS BIGINT)
    END AS "size_class",
    "t0"."arm",
    "t0"."arm_bucket" AS "bucket",
    "t0"."playback_stutters" AS "numerator",
    "t0"."playback_items" AS "denominator"
  FROM "records" AS "t0"
  WHERE
    (
      (
        "t0"."service_scope" = 'response'
      )
      OR (
        "t0"."service_scope" IS NULL
      )
      OR (
        (
          "t0"."engine" = 'watch'
        ) AND (
          "t0"."service_scope" = 'connection'
        )
      )
    )
    AND "t0"."arm_experiment" = 'bbr-2026'
    AND "t0"."arm" IS NOT NULL
    AND "t0"."arm_bucket" >= 0
    AND "t0"."arm_bucket" < 100
    AND "t0"."playback_stutters" IS NOT NULL
    AND "t0"."playback_items" IS NOT NULL
) AS "t1"
GROUP BY
  1,
  2,
  3,
  4,
  5;

-- stalled
SELECT
  "t2"."region",
  "t2"."day",
  "t2"."size_class",
  "t2"."arm",
  "t2"."bucket",
  COALESCE(
    SUM("t2"."numerator") FILTER(WHERE
      (
        "t2"."numerator" >= 0
      ) AND (
        "t2"."denominator" >= 0
      )),
    0
  ) AS "numerator",
  COALESCE(
    SUM("t2"."denominator") FILTER(WHERE
      (
        "t2"."numerator" >= 0
      ) AND (
        "t2"."denominator" >= 0
      )),
    0
  ) AS "denominator",
  COUNT(*) FILTER(WHERE
    NOT (
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
          NULLIF(
            STRPOS(
              'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
              "t0"."service_country"
            ) - 1,
            -1
          ) + (
            ABS(CAST(LENGTH("t0"."service_country") AS BIGINT) - 2) * 1134
          )
        ) - (
          (
            NULLIF(
              STRPOS(
                'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
                "t0"."service_country"
              ) - 1,
              -1
            ) + (
              ABS(CAST(LENGTH("t0"."service_country") AS BIGINT) - 2) * 1134
            )
          ) % 189
        )
      ) / 189 AS BIGINT) AS "region",
      CAST((
        "t0"."service_start_unix_ns" - (
          "t0"."service_start_unix_ns" % 86400000000000
        )
      ) / 86400000000000 AS BIGINT) AS "day",
      CASE
        WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 100000
        THEN 0
        WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 1000000
        THEN 1
        WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 3000000
        THEN 2
        WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 10000000
        THEN 3
        WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") IS NOT NULL
        THEN 4
        ELSE CAST(NULL AS BIGINT)
      END AS "size_class",
      "t0"."arm",
      "t0"."arm_bucket" AS "bucket",
      CAST(FLOOR(CAST("t0"."playback_stalled_ns" AS DOUBLE) / 1000.0) AS BIGINT) AS "numerator",
      CAST(FLOOR(CAST("t0"."playback_stalled_ns" AS DOUBLE) / 1000.0) AS BIGINT) + CAST(FLOOR(CAST("t0"."playback_played_ns" AS DOUBLE) / 1000.0) AS BIGINT) AS "denominator"
    FROM "records" AS "t0"
    WHERE
      (
        (
          "t0"."service_scope" = 'response'
        )
        OR (
          "t0"."service_scope" IS NULL
        )
        OR (
          (
            "t0"."engine" = 'watch'
          ) AND (
            "t0"."service_scope" = 'connection'
          )
        )
      )
      AND "t0"."arm_experiment" = 'bbr-2026'
      AND "t0"."arm" IS NOT NULL
      AND "t0"."arm_bucket" >= 0
      AND "t0"."arm_bucket" < 100
  ) AS "t1"
  WHERE
    "t1"."numerator" IS NOT NULL AND "t1"."denominator" IS NOT NULL
) AS "t2"
GROUP BY
  1,
  2,
  3,
  4,
  5;

-- bandwidth
SELECT
  "t3"."region",
  "t3"."day",
  "t3"."size_class",
  "t3"."arm",
  "t3"."bucket",
  "t3"."bin",
  SUM("t3"."n") AS "n"
FROM (
  SELECT
    "t2"."region",
    "t2"."day",
    "t2"."size_class",
    "t2"."arm",
    "t2"."bucket",
    "t2"."bin",
    CASE
      WHEN "t2"."bin" IS NULL
      THEN 1
      WHEN "t2"."unit" IS NULL
      THEN 1000000000
      ELSE CAST((
        1000000000 - (
          1000000000 % NULLIF(
            COUNT("t2"."bin") OVER (
              PARTITION BY "t2"."region", "t2"."day", "t2"."size_class", "t2"."arm", "t2"."unit"
              ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
            ),
            0
          )
        )
      ) / NULLIF(
        COUNT("t2"."bin") OVER (
          PARTITION BY "t2"."region", "t2"."day", "t2"."size_class", "t2"."arm", "t2"."unit"
          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
        ),
        0
      ) AS BIGINT)
    END AS "n"
  FROM (
    SELECT
      "t1"."region",
      "t1"."day",
      "t1"."size_class",
      "t1"."arm",
      "t1"."bucket",
      "t1"."unit",
      CASE
        WHEN NOT (
          (
            "t1"."x" >= 0.0
          ) AND (
            "t1"."x" < 1e+300
          )
        )
        THEN CAST(NULL AS BIGINT)
        WHEN "t1"."x" < 1000.0
        THEN 349
        WHEN "t1"."x" > 1000000000000.0
        THEN 1396
        ELSE CAST(CEIL(LN("t1"."x") / 0.01980262729617973) AS BIGINT)
      END AS "bin"
    FROM (
      SELECT
        CAST((
          (
            NULLIF(
              STRPOS(
                'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
                "t0"."service_country"
              ) - 1,
              -1
            ) + (
              ABS(CAST(LENGTH("t0"."service_country") AS BIGINT) - 2) * 1134
            )
          ) - (
            (
              NULLIF(
                STRPOS(
                  'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
                  "t0"."service_country"
                ) - 1,
                -1
              ) + (
                ABS(CAST(LENGTH("t0"."service_country") AS BIGINT) - 2) * 1134
              )
            ) % 189
          )
        ) / 189 AS BIGINT) AS "region",
        CAST((
          "t0"."service_start_unix_ns" - (
            "t0"."service_start_unix_ns" % 86400000000000
          )
        ) / 86400000000000 AS BIGINT) AS "day",
        CASE
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 100000
          THEN 0
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 1000000
          THEN 1
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 3000000
          THEN 2
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 10000000
          THEN 3
          WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") IS NOT NULL
          THEN 4
          ELSE CAST(NULL AS BIGINT)
        END AS "size_class",
        "t0"."arm",
        "t0"."arm_bucket" AS "bucket",
        "t0"."arm_unit" AS "unit",
        CASE
          WHEN (
            (
              COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") >= 500000
            )
            OR (
              "t0"."playback_items" IS NOT NULL
            )
          )
          AND COALESCE((
            "t0"."service_status" < 300
          ) OR "t0"."service_status" IN (460, 499), TRUE)
          THEN CASE
            WHEN (
              COALESCE(
                "t0"."source",
                CASE
                  WHEN "t0"."engine" IN ('sim', 'quic-sim', 'netns', 'play')
                  THEN 'client'
                  WHEN "t0"."engine" IN ('serve', 'watch')
                  THEN 'acked'
                  ELSE CAST(NULL AS TEXT)
                END
              ) <> 'acked'
            )
            AND (
              "t0"."completion_ns" IS NOT NULL
            )
            AND (
              "t0"."playback_items" IS NULL
            )
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
              CAST("t0"."bytes_delivered" AS DOUBLE) * 8000000000.0
            ) / CAST(NULLIF("t0"."completion_ns", 0) AS DOUBLE)
            ELSE (
              CAST("t0"."bytes_acked" AS DOUBLE) * 8000000000.0
            ) / CAST(NULLIF("t0"."busy_ns", 0) AS DOUBLE)
          END
          ELSE CAST(NULL AS DOUBLE)
        END AS "x"
      FROM "records" AS "t0"
      WHERE
        (
          (
            "t0"."service_scope" = 'response'
          )
          OR (
            "t0"."service_scope" IS NULL
          )
          OR (
            (
              "t0"."engine" = 'watch'
            ) AND (
              "t0"."service_scope" = 'connection'
            )
          )
        )
        AND "t0"."arm_experiment" = 'bbr-2026'
        AND "t0"."arm" IS NOT NULL
        AND "t0"."arm_bucket" >= 0
        AND "t0"."arm_bucket" < 100
    ) AS "t1"
    WHERE
      (
        "t1"."x" IS NOT NULL
      ) OR ISNAN("t1"."x")
  ) AS "t2"
) AS "t3"
GROUP BY
  1,
  2,
  3,
  4,
  5,
  6;

-- units
SELECT
  "t1"."region",
  "t1"."day",
  "t1"."size_class",
  "t1"."arm",
  "t1"."bucket",
  "t1"."experiment",
  COUNT(*) AS "rows",
  COUNT(DISTINCT "t1"."unit") AS "units"
FROM (
  SELECT
    CAST((
      (
        NULLIF(
          STRPOS(
            'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
            "t0"."service_country"
          ) - 1,
          -1
        ) + (
          ABS(CAST(LENGTH("t0"."service_country") AS BIGINT) - 2) * 1134
        )
      ) - (
        (
          NULLIF(
            STRPOS(
              'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW                   AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK                      AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI                                     AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE                                                                                                                                              BM CA GL PM US                                                                                                                                                                               ',
              "t0"."service_country"
            ) - 1,
            -1
          ) + (
            ABS(CAST(LENGTH("t0"."service_country") AS BIGINT) - 2) * 1134
          )
        ) % 189
      )
    ) / 189 AS BIGINT) AS "region",
    CAST((
      "t0"."service_start_unix_ns" - (
        "t0"."service_start_unix_ns" % 86400000000000
      )
    ) / 86400000000000 AS BIGINT) AS "day",
    CASE
      WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 100000
      THEN 0
      WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 1000000
      THEN 1
      WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 3000000
      THEN 2
      WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") < 10000000
      THEN 3
      WHEN COALESCE("t0"."size_bytes", "t0"."bytes_acked", "t0"."bytes_delivered") IS NOT NULL
      THEN 4
      ELSE CAST(NULL AS BIGINT)
    END AS "size_class",
    "t0"."arm",
    "t0"."arm_bucket" AS "bucket",
    "t0"."arm_experiment" AS "experiment",
    "t0"."arm_unit" AS "unit"
  FROM "records" AS "t0"
  WHERE
    (
      (
        "t0"."service_scope" = 'response'
      )
      OR (
        "t0"."service_scope" IS NULL
      )
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
  1,
  2,
  3,
  4,
  5,
  6;

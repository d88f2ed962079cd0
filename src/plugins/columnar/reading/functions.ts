/**
 * Which functions a person's own query may call. The names were taken from `system.functions` of the embedded engine and looked through; a test names each function
 * of the engine that is in neither list, so that a new engine's functions are looked at before anyone can call them. Names count without regard to case.
 */

const AGGREGATE_NAMES = `
    analysisOfVariance anova any any_respect_nulls any_value any_value_respect_nulls anyHeavy anyLast anyLast_respect_nulls anyLastRespectNulls
    anyRespectNulls anyValueRespectNulls approx_top_count approx_top_k approx_top_sum argAndMax argAndMin argMax argMin array_agg array_concat_agg avg
    avgWeighted BIT_AND BIT_OR BIT_XOR boundingRatio categoricalInformationValue contingency corr corrMatrix corrStable count COVAR_POP COVAR_SAMP covarPop
    covarPopMatrix covarPopStable covarSamp covarSampMatrix covarSampStable cramersV cramersVBiasCorrected cume_dist deltaSum deltaSumTimestamp dense_rank
    denseRank distinctDynamicTypes distinctJSONPaths distinctJSONPathsAndTypes entropy estimateCompressionRatio exponentialMovingAverage
    exponentialTimeDecayedAvg exponentialTimeDecayedCount exponentialTimeDecayedMax exponentialTimeDecayedSum first_value first_value_respect_nulls
    firstValueRespectNulls group_concat groupArray groupArrayInsertAt groupArrayIntersect groupArrayLast groupArrayMovingAvg groupArrayMovingSum
    groupArraySample groupArraySorted groupBitAnd groupBitmap groupBitmapAnd groupBitmapOr groupBitmapXor groupBitOr groupBitXor groupConcat groupFormat
    groupNumericIndexedVector groupUniqArray histogram intervalLengthSum kolmogorovSmirnovTest kurtPop kurtSamp lag lagInFrame largestTriangleThreeBuckets
    last_value last_value_respect_nulls lastValueRespectNulls lead leadInFrame lttb mannWhitneyUTest max max_by maxIntersections maxIntersectionsPosition
    maxMappedArrays meanZTest median medianBFloat16 medianBFloat16Weighted medianDD medianDeterministic medianExact medianExactHigh medianExactLow
    medianExactWeighted medianExactWeightedInterpolated medianGK medianInterpolatedWeighted medianTDigest medianTDigestWeighted medianTiming
    medianTimingWeighted min min_by minMappedArrays MVTEncode nonNegativeDerivative nth_value ntile percent_rank percentRank quantile quantileBFloat16
    quantileBFloat16Weighted quantileDD quantileDeterministic quantileExact quantileExactExclusive quantileExactHigh quantileExactInclusive quantileExactLow
    quantileExactWeighted quantileExactWeightedInterpolated quantileGK quantileInterpolatedWeighted quantilePrometheusHistogram quantiles quantilesBFloat16
    quantilesBFloat16Weighted quantilesDD quantilesDeterministic quantilesExact quantilesExactExclusive quantilesExactHigh quantilesExactInclusive
    quantilesExactLow quantilesExactWeighted quantilesExactWeightedInterpolated quantilesGK quantilesInterpolatedWeighted quantilesPrometheusHistogram
    quantilesTDigest quantilesTDigestWeighted quantilesTiming quantilesTimingWeighted quantileTDigest quantileTDigestWeighted quantileTiming
    quantileTimingWeighted rank rankCorr retention row_number sequenceCount sequenceMatch sequenceMatchEvents sequenceNextNode simpleLinearRegression
    singleValueOrNull skewPop skewSamp sparkBar ST_AsMVT STD STDDEV STDDEV_POP STDDEV_SAMP stddevPop stddevPopStable stddevSamp stddevSampStable
    stochasticLinearRegression stochasticLogisticRegression string_agg studentTTest studentTTestOneSample sum sumCount sumKahan sumMapFiltered
    sumMapFilteredWithOverflow sumMappedArrays sumMapWithOverflow sumWithOverflow theilsU timeSeriesChangesToGrid timeSeriesDeltaToGrid timeSeriesDerivToGrid
    timeSeriesGroupArray timeSeriesIncreaseToGrid timeSeriesInstantDeltaToGrid timeSeriesInstantRateToGrid timeSeriesLastToGrid timeSeriesLastTwoSamples
    timeSeriesPredictLinearToGrid timeSeriesRateToGrid timeSeriesResampleToGridWithStaleness timeSeriesResetsToGrid topK topKWeighted uniq uniqCombined
    uniqCombined64 uniqExact uniqHLL12 uniqUpTo VAR_POP VAR_SAMP varPop varPopStable varSamp varSampStable welchTTest windowFunnel`;

/** Functions that compute from their arguments alone, or tell the time. */
export const ALLOWED = names({
  logic: `
    and assumeNotNull caseWithoutExpr caseWithoutExpression clamp coalesce equals firstNonDefault globalIn globalInIgnoreSet globalNotIn globalNotInIgnoreSet
    globalNotNullIn globalNotNullInIgnoreSet globalNullIn globalNullInIgnoreSet greater greaterOrEquals greatest if ifNull in inIgnoreSet isDistinctFrom
    isNotDistinctFrom isNotNull isNull isNullable isZeroOrNull least less lessOrEquals multiIf not notEquals notIn notInIgnoreSet notNullIn notNullInIgnoreSet
    nullIf nullIn nullInIgnoreSet or toNullable xor`,
  numbers: `
    abs acos acosh asin asinh atan atan2 atanh avg2 bitAnd bitCount bitHammingDistance bitmapAnd bitmapAndCardinality bitmapAndnot bitmapAndnotCardinality
    bitmapBuild bitmapCardinality bitmapContains bitmapHasAll bitmapHasAny bitmapMax bitmapMin bitmapOr bitmapOrCardinality bitmapSubsetInRange
    bitmapSubsetLimit bitmapToArray bitmapTransform bitmapXor bitmapXorCardinality bitNot bitOr bitRotateLeft bitRotateRight bitShiftLeft bitShiftRight
    bitSlice bitTest bitTestAll bitTestAny bitXor byteSwap cbrt ceil ceiling cos cosh cosineDistance cosineDistanceTransposed
    cosineDistanceTransposedQuantized degrees dequantizeInt8ToBFloat16 distanceCosine distanceCosineTransposed distanceL1 distanceL2 distanceL2Squared
    distanceL2Transposed distanceLinf distanceLp divide divideDecimal divideOrNull dotProductTransposed dotProductTransposedQuantized e erf erfc exp exp10
    exp2 factorial financialInternalRateOfReturn financialInternalRateOfReturnExtended financialNetPresentValue financialNetPresentValueExtended floor
    fuzzBits gcd hypot ifNotFinite intDiv intDivOrNull intDivOrZero intExp10 intExp2 isFinite isInfinite isNaN isPrime isProbablePrime L1Distance L1Norm
    L1Normalize L2Distance L2DistanceTransposed L2DistanceTransposedQuantized L2Norm L2Normalize L2SquaredDistance L2SquaredNorm lcm lgamma LinfDistance
    LinfNorm LinfNormalize ln log log10 log1p log2 LpDistance LpNorm LpNormalize max2 midpoint min2 minus mod modOrNull modulo moduloLegacy moduloOrNull
    moduloOrZero multiply multiplyDecimal negate normalizeL1 normalizeL2 normalizeLinf normalizeLp normL1 normL2 normL2Squared normLinf normLp
    numericIndexedVectorAllValueSum numericIndexedVectorBuild numericIndexedVectorCardinality numericIndexedVectorGetValue numericIndexedVectorPointwiseAdd
    numericIndexedVectorPointwiseDivide numericIndexedVectorPointwiseEqual numericIndexedVectorPointwiseGreater numericIndexedVectorPointwiseGreaterEqual
    numericIndexedVectorPointwiseLess numericIndexedVectorPointwiseLessEqual numericIndexedVectorPointwiseMultiply numericIndexedVectorPointwiseNotEqual
    numericIndexedVectorPointwiseSubtract numericIndexedVectorShortDebugString numericIndexedVectorToMap pi plus pmod pmodOrNull positive_modulo
    positive_modulo_or_null positiveModulo positiveModuloOrNull pow power proportionsZTest quantizeBFloat16ToInt8 radians rand rand32 rand64 randBernoulli
    randBinomial randCanonical randChiSquared randConstant randExponential randFisherF randLogNormal randNegativeBinomial randNormal randomFixedString
    randomPrintableASCII randomString randomStringUTF8 randPoisson randStudentT randUniform round roundAge roundBankers roundDown roundDuration roundToExp2
    scalarProductTransposed sigmoid sign sin sinh sqr sqrt subBitmap tan tanh tgamma trunc truncate width_bucket widthBucket`,
  texts: `
    aes_decrypt_mysql aes_encrypt_mysql alphaTokens appendTrailingCharIfAbsent array_to_string arrayStringConcat ascii base32Decode base32Encode base58Decode
    base58Encode base64Decode base64Encode base64URLDecode base64URLEncode basename bin bitmaskToArray bitmaskToList bitPositionsToArray byteHammingDistance
    byteSlice caseFoldUTF8 char CHAR_LENGTH CHARACTER_LENGTH cityHash64 compareSubstrings concat concat_ws concatAssumeInjective concatWithSeparator
    concatWithSeparatorAssumeInjective conv convertCharset countMatches countMatchesCaseInsensitive countSubstrings countSubstringsCaseInsensitive
    countSubstringsCaseInsensitiveUTF8 CRC32 CRC32IEEE CRC64 cutFragment cutIPv6 cutQueryString cutQueryStringAndFragment cutToFirstSignificantSubdomain
    cutToFirstSignificantSubdomainRFC cutToFirstSignificantSubdomainWithWWW cutToFirstSignificantSubdomainWithWWWRFC cutURLParameter cutWWW
    damerauLevenshteinDistance dateTime64ToSnowflakeID dateTimeToSnowflakeID dateTimeToUUIDv7 decodeHTMLComponent decodeURLComponent decodeURLFormComponent
    decodeXMLComponent decrypt domain domainRFC domainWithoutWWW domainWithoutWWWRFC dynamicElement dynamicType editDistance editDistanceUTF8
    encodeURLComponent encodeURLFormComponent encodeXMLComponent encrypt endsWith endsWithCaseInsensitive endsWithCaseInsensitiveUTF8 endsWithUTF8 extract
    extractAll extractAllGroups extractAllGroupsHorizontal extractAllGroupsVertical extractGroups extractTextFromHTML extractURLParameter
    extractURLParameterNames extractURLParameters farmFingerprint64 farmHash64 firstLine firstSignificantSubdomain firstSignificantSubdomainRFC format
    fragment FROM_BASE64 gccMurmurHash generateSnowflakeID generateUUIDv4 generateUUIDv7 halfMD5 hasAllToken hasAllTokens hasAnyToken hasAnyTokens hasPhrase
    hasSubsequence hasSubsequenceCaseInsensitive hasSubsequenceCaseInsensitiveUTF8 hasSubsequenceUTF8 hasToken hasTokenCaseInsensitive
    hasTokenCaseInsensitiveOrNull hasTokenOrNull hex highlight hilbertDecode hilbertEncode hiveHash HMAC icebergHash ilike INET6_ATON INET6_NTOA INET_ATON
    INET_NTOA initcap initcapUTF8 instr intHash32 intHash64 IPv4CIDRToRange IPv4NumToString IPv4NumToStringClassC IPv4StringToNum IPv4StringToNumOrDefault
    IPv4StringToNumOrNull IPv4ToIPv6 IPv6CIDRToRange IPv6NumToString IPv6StringToNum IPv6StringToNumOrDefault IPv6StringToNumOrNull isASCII
    isDynamicElementInSharedData isIPAddressInRange isIPv4String isIPv6String isValidASCII isValidJSON isValidUTF8 jaroSimilarity jaroWinklerSimilarity
    javaHash javaHashUTF16LE JSON_ARRAY_LENGTH JSON_EXISTS JSON_QUERY JSON_VALUE JSONAllPaths JSONAllPathsWithTypes JSONAllValues JSONArrayLength
    JSONDynamicPaths JSONDynamicPathsWithTypes JSONExtract JSONExtractArrayRaw JSONExtractArrayRawCaseInsensitive JSONExtractBool
    JSONExtractBoolCaseInsensitive JSONExtractCaseInsensitive JSONExtractFloat JSONExtractFloatCaseInsensitive JSONExtractInt JSONExtractIntCaseInsensitive
    JSONExtractKeys JSONExtractKeysAndValues JSONExtractKeysAndValuesCaseInsensitive JSONExtractKeysAndValuesRaw JSONExtractKeysAndValuesRawCaseInsensitive
    JSONExtractKeysCaseInsensitive JSONExtractRaw JSONExtractRawCaseInsensitive JSONExtractString JSONExtractStringCaseInsensitive JSONExtractUInt
    JSONExtractUIntCaseInsensitive JSONHas JSONKey JSONLength JSONMergePatch JSONSharedDataPaths JSONSharedDataPathsWithTypes JSONType jumpConsistentHash
    kafkaMurmurHash keccak256 kostikConsistentHash lcase left leftPad leftPadUTF8 leftUTF8 lengthUTF8 levenshteinDistance levenshteinDistanceUTF8 like locate
    lower lowerUTF8 lpad ltrim match matchPhrase MD4 MD5 metroHash64 mid mismatches mortonDecode mortonEncode multiFuzzyMatchAllIndices multiFuzzyMatchAny
    multiFuzzyMatchAnyIndex multiMatchAllIndices multiMatchAny multiMatchAnyIndex multiSearchAllPositions multiSearchAllPositionsCaseInsensitive
    multiSearchAllPositionsCaseInsensitiveUTF8 multiSearchAllPositionsUTF8 multiSearchAny multiSearchAnyCaseInsensitive multiSearchAnyCaseInsensitiveUTF8
    multiSearchAnyUTF8 multiSearchFirstIndex multiSearchFirstIndexCaseInsensitive multiSearchFirstIndexCaseInsensitiveUTF8 multiSearchFirstIndexUTF8
    multiSearchFirstPosition multiSearchFirstPositionCaseInsensitive multiSearchFirstPositionCaseInsensitiveUTF8 multiSearchFirstPositionUTF8 murmurHash2_32
    murmurHash2_64 murmurHash3_128 murmurHash3_32 murmurHash3_64 NATURAL_SORT_KEY naturalSortKey netloc ngramDistance ngramDistanceCaseInsensitive
    ngramDistanceCaseInsensitiveUTF8 ngramDistanceUTF8 ngramMinHash ngramMinHashArg ngramMinHashArgCaseInsensitive ngramMinHashArgCaseInsensitiveUTF8
    ngramMinHashArgUTF8 ngramMinHashCaseInsensitive ngramMinHashCaseInsensitiveUTF8 ngramMinHashUTF8 ngrams ngramSearch ngramSearchCaseInsensitive
    ngramSearchCaseInsensitiveUTF8 ngramSearchUTF8 ngramSimHash ngramSimHashCaseInsensitive ngramSimHashCaseInsensitiveUTF8 ngramSimHashUTF8 normalizeUTF8NFC
    normalizeUTF8NFD normalizeUTF8NFKC normalizeUTF8NFKCCasefold normalizeUTF8NFKD notILike notLike overlay overlayUTF8 path pathFull port portRFC position
    positionCaseInsensitive positionCaseInsensitiveUTF8 positionUTF8 prettyPrintJSON printf protocol queryString queryStringAndFragment REGEXP_EXTRACT
    regexp_instr REGEXP_MATCHES REGEXP_REPLACE REGEXP_SUBSTR regexpExtract regexpInstr regexpPosition regexpQuoteMeta removeAccentsUTF8 removeDiacriticsUTF8
    repeat replace replaceAll replaceOne replaceRegexpAll replaceRegexpOne reverseBySeparator reverseUTF8 right rightPad rightPadUTF8 rightUTF8 RIPEMD160 rpad
    rtrim SHA1 SHA224 SHA256 SHA384 SHA512 SHA512_256 simpleJSONExtractBool simpleJSONExtractFloat simpleJSONExtractInt simpleJSONExtractRaw
    simpleJSONExtractString simpleJSONExtractUInt simpleJSONHas sipHash128 sipHash128Keyed sipHash128Reference sipHash128ReferenceKeyed sipHash64
    sipHash64Keyed snowflakeIDToDateTime snowflakeIDToDateTime64 soundex space sparseGrams sparseGramsHashes sparseGramsHashesUTF8 sparseGramsUTF8
    splitByAlpha splitByChar splitByNonAlpha splitByRegexp splitByString splitByWhitespace sqid sqidDecode sqidEncode startsWith startsWithCaseInsensitive
    startsWithCaseInsensitiveUTF8 startsWithUTF8 stringBytesEntropy stringBytesUniq stringJaccardIndex stringJaccardIndexUTF8 substr substring SUBSTRING_INDEX
    substringIndex substringIndexUTF8 substringUTF8 TO_BASE64 toIPv4 toIPv4OrDefault toIPv4OrNull toIPv4OrZero toIPv6 toIPv6OrDefault toIPv6OrNull
    toIPv6OrZero toJSONString tokens tokensForLikePattern topLevelDomain topLevelDomainRFC toUUIDOrDefault toUUIDOrNull toValidUTF8 translate translateUTF8
    trim trimBoth trimLeft trimRight tryBase32Decode tryBase58Decode tryBase64Decode tryBase64URLDecode tryDecrypt ucase unbin unhex upper upperUTF8 URLHash
    URLHierarchy URLPathHierarchy UUIDNumToString UUIDStringToNum UUIDToNum UUIDv7ToDateTime visitParamExtractBool visitParamExtractFloat visitParamExtractInt
    visitParamExtractRaw visitParamExtractString visitParamExtractUInt visitParamHas wordShingleMinHash wordShingleMinHashArg
    wordShingleMinHashArgCaseInsensitive wordShingleMinHashArgCaseInsensitiveUTF8 wordShingleMinHashArgUTF8 wordShingleMinHashCaseInsensitive
    wordShingleMinHashCaseInsensitiveUTF8 wordShingleMinHashUTF8 wordShingleSimHash wordShingleSimHashCaseInsensitive wordShingleSimHashCaseInsensitiveUTF8
    wordShingleSimHashUTF8 wyHash64 xxh3 xxh3_128 xxHash32 xxHash64 xxHash64Spark yandexConsistentHash`,
  times: `
    addDate addDays addHours addInterval addMicroseconds addMilliseconds addMinutes addMonths addNanoseconds addQuarters addSeconds addTupleOfIntervals
    addWeeks addYears age changeDay changeHour changeMinute changeMonth changeSecond changeYear curdate current_date current_timestamp date_bin DATE_DIFF
    DATE_FORMAT DATE_TRUNC dateDiff dateName dateTrunc DAY DAYOFMONTH DAYOFWEEK DAYOFYEAR formatDateTime formatDateTimeInJodaSyntax FROM_DAYS FROM_UNIXTIME
    from_utc_timestamp fromDaysSinceYearZero fromDaysSinceYearZero32 fromModifiedJulianDay fromModifiedJulianDayOrNull fromUnixTimestamp
    fromUnixTimestampInJodaSyntax fromUTCTimestamp hop hopEnd hopStart HOUR LAST_DAY localtime localtimestamp makeDate makeDate32 makeDateTime makeDateTime64
    MICROSECOND MILLISECOND MINUTE MONTH monthName NANOSECOND now now64 nowInBlock nowInBlock64 QUARTER SECOND seriesDecomposeSTL seriesOutliersDetectTukey
    serverTimeZone subDate subtractDays subtractHours subtractInterval subtractMicroseconds subtractMilliseconds subtractMinutes subtractMonths
    subtractNanoseconds subtractQuarters subtractSeconds subtractTupleOfIntervals subtractWeeks subtractYears time_bucket timeDiff timeSlot timeSlots
    timestamp TIMESTAMP_DIFF timestampDiff timeZone timeZoneOf timeZoneOffset TO_DAYS to_utc_timestamp today toDayOfMonth toDayOfWeek toDayOfYear
    toDaysInMonth toDaysSinceYearZero toHour toISOWeek toISOYear toLastDayOfMonth toLastDayOfWeek toMicrosecond toMillisecond toMinute toModifiedJulianDay
    toModifiedJulianDayOrNull toMonday toMonth toMonthNumSinceEpoch toNanosecond toQuarter toRelativeDayNum toRelativeHourNum toRelativeMinuteNum
    toRelativeMonthNum toRelativeQuarterNum toRelativeSecondNum toRelativeWeekNum toRelativeYearNum toSecond toStartOfDay toStartOfFifteenMinutes
    toStartOfFiveMinute toStartOfFiveMinutes toStartOfHour toStartOfInterval toStartOfISOYear toStartOfMicrosecond toStartOfMillisecond toStartOfMinute
    toStartOfMonth toStartOfNanosecond toStartOfQuarter toStartOfSecond toStartOfTenMinutes toStartOfWeek toStartOfYear toTimeWithFixedDate toTimeZone
    toUnixTimestamp toUTCTimestamp toWeek toYear toYearNumSinceEpoch toYearWeek toYYYYMM toYYYYMMDD toYYYYMMDDhhmmss tumble tumbleEnd tumbleStart
    UTC_timestamp UTCTimestamp week windowID YEAR yearweek yesterday YYYYMMDDhhmmssToDateTime YYYYMMDDhhmmssToDateTime64 YYYYMMDDToDate YYYYMMDDToDate32`,
  types: `
    _CAST accurateCast accurateCastOrDefault accurateCastOrNull caseWithExpr caseWithExpression CAST DATE formatRow formatRowNoNewline
    fromUnixTimestamp64Micro fromUnixTimestamp64Milli fromUnixTimestamp64Nano fromUnixTimestamp64Second nested parseDateTime parseDateTime32BestEffort
    parseDateTime32BestEffortOrNull parseDateTime32BestEffortOrZero parseDateTime64 parseDateTime64BestEffort parseDateTime64BestEffortOrNull
    parseDateTime64BestEffortOrZero parseDateTime64BestEffortUS parseDateTime64BestEffortUSOrNull parseDateTime64BestEffortUSOrZero
    parseDateTime64InJodaSyntax parseDateTime64InJodaSyntaxOrNull parseDateTime64InJodaSyntaxOrZero parseDateTime64OrNull parseDateTime64OrZero
    parseDateTimeBestEffort parseDateTimeBestEffortOrNull parseDateTimeBestEffortOrZero parseDateTimeBestEffortUS parseDateTimeBestEffortUSOrNull
    parseDateTimeBestEffortUSOrZero parseDateTimeInJodaSyntax parseDateTimeInJodaSyntaxOrNull parseDateTimeInJodaSyntaxOrZero parseDateTimeOrNull
    parseDateTimeOrZero reinterpret reinterpretAsDate reinterpretAsDateTime reinterpretAsFixedString reinterpretAsFloat32 reinterpretAsFloat64
    reinterpretAsInt128 reinterpretAsInt16 reinterpretAsInt256 reinterpretAsInt32 reinterpretAsInt64 reinterpretAsInt8 reinterpretAsString
    reinterpretAsUInt128 reinterpretAsUInt16 reinterpretAsUInt256 reinterpretAsUInt32 reinterpretAsUInt64 reinterpretAsUInt8 reinterpretAsUUID str_to_date
    TO_UNIXTIME toBFloat16 toBFloat16OrNull toBFloat16OrZero toBool toDate toDate32 toDate32OrDefault toDate32OrNull toDate32OrZero toDateOrDefault
    toDateOrNull toDateOrZero toDateTime toDateTime32 toDateTime64 toDateTime64OrDefault toDateTime64OrNull toDateTime64OrZero toDateTimeOrDefault
    toDateTimeOrNull toDateTimeOrZero toDecimal128 toDecimal128OrDefault toDecimal128OrNull toDecimal128OrZero toDecimal256 toDecimal256OrDefault
    toDecimal256OrNull toDecimal256OrZero toDecimal32 toDecimal32OrDefault toDecimal32OrNull toDecimal32OrZero toDecimal64 toDecimal64OrDefault
    toDecimal64OrNull toDecimal64OrZero toDecimalString toFixedString toFloat32 toFloat32OrDefault toFloat32OrNull toFloat32OrZero toFloat64
    toFloat64OrDefault toFloat64OrNull toFloat64OrZero toInt128 toInt128OrDefault toInt128OrNull toInt128OrZero toInt16 toInt16OrDefault toInt16OrNull
    toInt16OrZero toInt256 toInt256OrDefault toInt256OrNull toInt256OrZero toInt32 toInt32OrDefault toInt32OrNull toInt32OrZero toInt64 toInt64OrDefault
    toInt64OrNull toInt64OrZero toInt8 toInt8OrDefault toInt8OrNull toInt8OrZero toInterval toIntervalDay toIntervalHour toIntervalMicrosecond
    toIntervalMillisecond toIntervalMinute toIntervalMonth toIntervalNanosecond toIntervalQuarter toIntervalSecond toIntervalWeek toIntervalYear
    toLowCardinality toString toStringCutToZero toTime toTime64 toTime64OrNull toTime64OrZero toTimeOrNull toTimeOrZero toUInt128 toUInt128OrDefault
    toUInt128OrNull toUInt128OrZero toUInt16 toUInt16OrDefault toUInt16OrNull toUInt16OrZero toUInt256 toUInt256OrDefault toUInt256OrNull toUInt256OrZero
    toUInt32 toUInt32OrDefault toUInt32OrNull toUInt32OrZero toUInt64 toUInt64OrDefault toUInt64OrNull toUInt64OrZero toUInt8 toUInt8OrDefault toUInt8OrNull
    toUInt8OrZero toUnixTimestamp64Micro toUnixTimestamp64Milli toUnixTimestamp64Nano toUnixTimestamp64Second toUUID toUUIDOrZero`,
  collections: `
    array array_remove arrayAll arrayAUC arrayAUCPR arrayAutocorrelation arrayAvg arrayBottomK arrayCompact arrayConcat arrayCount arrayCumSum
    arrayCumSumNonNegative arrayDifference arrayDistinct arrayDotProduct arrayElement arrayElementOrNull arrayEnumerate arrayEnumerateDense
    arrayEnumerateDenseRanked arrayEnumerateUniq arrayEnumerateUniqRanked arrayExcept arrayExists arrayFill arrayFilter arrayFirst arrayFirstIndex
    arrayFirstOrNull arrayFlatten arrayFold arrayIntersect arrayJaccardIndex arrayJoin arrayLast arrayLastIndex arrayLastOrNull arrayLevenshteinDistance
    arrayLevenshteinDistanceWeighted arrayMap arrayMax arrayMin arrayNormalizedGini arrayPartialReverseSort arrayPartialShuffle arrayPartialSort arrayPopBack
    arrayPopFront arrayPRAUC arrayProduct arrayPushBack arrayPushFront arrayRandomSample arrayReduce arrayReduceInRanges arrayRemove arrayResize arrayReverse
    arrayReverseFill arrayReverseSort arrayReverseSplit arrayROCAUC arrayRotateLeft arrayRotateRight arrayShiftLeft arrayShiftRight arrayShingles arrayShuffle
    arraySimilarity arraySlice arraySort arraySplit arraySum arraySymmetricDifference arrayTopK arrayTranspose arrayUnion arrayUniq arrayWithConstant arrayZip
    arrayZipUnaligned CARDINALITY countEqual dotProduct empty emptyArrayDate emptyArrayDateTime emptyArrayFloat32 emptyArrayFloat64 emptyArrayInt16
    emptyArrayInt32 emptyArrayInt64 emptyArrayInt8 emptyArrayString emptyArrayToSingle emptyArrayUInt16 emptyArrayUInt32 emptyArrayUInt64 emptyArrayUInt8
    extractKeyValuePairs extractKeyValuePairsWithEscaping flatten flattenTuple has hasAll hasAny hasSubstr indexOf indexOfAssumeSorted length map
    MAP_FROM_ARRAYS mapAdd mapAll mapApply mapConcat mapContains mapContainsKey mapContainsKeyLike mapContainsValue mapContainsValueLike mapExists
    mapExtractKeyLike mapExtractValueLike mapFilter mapFromArrays mapFromString mapKeys mapPartialReverseSort mapPartialSort mapPopulateSeries mapReverseSort
    mapSort mapSubtract mapUpdate mapValues notEmpty OCTET_LENGTH randomHadamardTransform range replicate reverse scalarProduct str_to_map tuple tupleConcat
    tupleDivide tupleDivideByNumber tupleElement tupleHammingDistance tupleIntDiv tupleIntDivByNumber tupleIntDivOrZero tupleIntDivOrZeroByNumber tupleMinus
    tupleModulo tupleModuloByNumber tupleMultiply tupleMultiplyByNumber tupleNames tupleNegate tuplePlus tuplePositiveModuloByNumber tupleToNameValuePairs
    unnest vectorDifference vectorSum`,
  geometry: `
    areaCartesian areaSpherical geoDistance geohashDecode geohashEncode geohashesInBox geometryIntersectCartesian geometryIntersectSpherical geoToH3 geoToMGRS
    geoToUTM greatCircleAngle greatCircleDistance h3CellAreaM2 h3CellAreaRads2 h3Distance h3EdgeAngle h3EdgeLengthKm h3EdgeLengthM h3ExactEdgeLengthKm
    h3ExactEdgeLengthM h3ExactEdgeLengthRads h3GetBaseCell h3GetDestinationIndexFromUnidirectionalEdge h3GetFaces h3GetIndexesFromUnidirectionalEdge
    h3GetOriginIndexFromUnidirectionalEdge h3GetPentagonIndexes h3GetRes0Indexes h3GetResolution h3GetUnidirectionalEdge h3GetUnidirectionalEdgeBoundary
    h3GetUnidirectionalEdgesFromHexagon h3HexAreaKm2 h3HexAreaM2 h3HexRing h3IndexesAreNeighbors h3IsPentagon h3IsResClassIII h3IsValid h3kRing h3Line
    h3NumHexagons h3PointDistKm h3PointDistM h3PointDistRads h3PolygonToCells h3PolygonToCellsWithContainment h3ToCenterChild h3ToChildren h3ToGeo
    h3ToGeoBoundary h3ToParent h3ToString h3UnidirectionalEdgeIsValid MGRSToGeo MVTBoundingBox MVTBoundingBoxMercator MVTEncodeGeom perimeterCartesian
    perimeterSpherical pointInEllipses pointInPolygon polygonAreaCartesian polygonAreaSpherical polygonConvexHullCartesian polygonPerimeterCartesian
    polygonPerimeterSpherical polygonsDistanceCartesian polygonsDistanceSpherical polygonsEqualsCartesian polygonsIntersectCartesian
    polygonsIntersectionCartesian polygonsIntersectionSpherical polygonsIntersectSpherical polygonsSymDifferenceCartesian polygonsSymDifferenceSpherical
    polygonsUnionCartesian polygonsUnionSpherical polygonsWithinCartesian polygonsWithinSpherical readWKB readWKBLineString readWKBMultiLineString
    readWKBMultiPolygon readWKBPoint readWKBPolygon readWKT readWKTLineString readWKTMultiLineString readWKTMultiPolygon readWKTPoint readWKTPolygon
    readWKTRing ST_AsMVTGeom ST_LineFromWKB ST_MLineFromWKB ST_MPolyFromWKB ST_PointFromWKB ST_PolyFromWKB stringToH3 SVG UTMToGeo WKB WKT`,
  aggregates: AGGREGATE_NAMES,
  others: `
    bar blockNumber blockSerializedSize blockSize byteSize colorOKLABToSRGB colorOKLCHToSRGB colorSRGBToOKLAB colorSRGBToOKLCH countDigits current_database
    currentDatabase DATABASE defaultValueOfArgumentType defaultValueOfTypeName digits dumpColumnStructure errorCodeToName finalizeAggregation flipCoordinates
    FORMAT_BYTES formatQuery formatQueryOrNull formatQuerySingleLine formatQuerySingleLineOrNull formatReadableDecimalSize formatReadableQuantity
    formatReadableSize formatReadableTimeDelta generateRandomStructure getSizeOfEnumType getSubcolumn getTypeSerializationStreams highlightQuery icebergBucket
    icebergTruncate identity ignore indexHint initializeAggregation isConstant isDecimalOverflow lowCardinalityIndices lowCardinalityKeys MACNumToString
    MACStringToNum MACStringToOUI materialize minSampleSizeContinous minSampleSizeContinuous minSampleSizeConversion neighbor normalizedQueryHash
    normalizedQueryHashKeepNames normalizeQuery normalizeQueryKeepNames obfuscateQuery obfuscateQueryWithSeed parseReadableSize parseReadableSizeOrNull
    parseReadableSizeOrZero parseTimeDelta rowNumberInAllBlocks rowNumberInBlock runningAccumulate runningConcurrency runningDifference
    runningDifferenceStartingWithFirstValue SCHEMA structureToCapnProtoSchema structureToProtobufSchema throwIf toColumnTypeName tokenizeQuery toTypeName
    transform variantElement variantType version visibleWidth`,
  // What the parser makes of signs and keywords.
  syntax: 'lambda exists grouping untuple',
});

/** Known and refused: each one tells of something else than its arguments, or does something. */
export const REFUSED = names({
  // Tables whose names are texts, files, models, dictionaries, lists on the server, other services.
  elsewhere: `
    AIClassify AIExtract AIGenerate AITranslate aiEmbed catboostEvaluate cutToFirstSignificantSubdomainCustom cutToFirstSignificantSubdomainCustomRFC
    cutToFirstSignificantSubdomainCustomWithWWW cutToFirstSignificantSubdomainCustomWithWWWRFC dictGet dictGetAll dictGetChildren dictGetDate
    dictGetDateOrDefault dictGetDateTime dictGetDateTimeOrDefault dictGetDescendants dictGetFloat32 dictGetFloat32OrDefault dictGetFloat64
    dictGetFloat64OrDefault dictGetHierarchy dictGetIPv4 dictGetIPv4OrDefault dictGetIPv6 dictGetIPv6OrDefault dictGetInt16 dictGetInt16OrDefault dictGetInt32
    dictGetInt32OrDefault dictGetInt64 dictGetInt64OrDefault dictGetInt8 dictGetInt8OrDefault dictGetKeys dictGetOrDefault dictGetOrNull dictGetRoot
    dictGetString dictGetStringOrDefault dictGetUInt16 dictGetUInt16OrDefault dictGetUInt32 dictGetUInt32OrDefault dictGetUInt64 dictGetUInt64OrDefault
    dictGetUInt8 dictGetUInt8OrDefault dictGetUUID dictGetUUIDOrDefault dictHas dictIsIn evalMLMethod file firstSignificantSubdomainCustom
    firstSignificantSubdomainCustomRFC generateSerialID hasColumnInTable joinGet joinGetOrNull naiveBayesClassifier naiveBayesClassifierWithAllProbs
    naiveBayesClassifierWithProb naiveBayesNgrams regionHierarchy regionIn regionToArea regionToCity regionToContinent regionToCountry regionToDistrict
    regionToName regionToPopulation regionToTopContinent timeSeriesCopyTag timeSeriesCopyTags timeSeriesExtractTag timeSeriesFromGrid
    timeSeriesGroupToSamplingKey timeSeriesGroupToTags timeSeriesIdToGroup timeSeriesIdToTags timeSeriesIdToTagsGroup timeSeriesJoinTags timeSeriesRange
    timeSeriesRemoveAllTagsExcept timeSeriesRemoveTag timeSeriesRemoveTags timeSeriesReplaceTag timeSeriesStoreTags timeSeriesTagsGroupToTags
    timeSeriesTagsToGroup timeSeriesThrowDuplicateSeriesIf`,
  // The server, its users, settings, roles, disks and connections.
  server: `
    FQDN authUser authenticatedUser buildId chdb connectionId connection_id currentProfiles currentQueryID currentRoles currentSchemas currentUser
    current_query_id current_schemas current_user defaultProfiles defaultRoles displayName enabledProfiles enabledRoles filesystemAvailable filesystemCapacity
    filesystemUnreserved fullHostName getClientHTTPHeader getMacro getMaxTableNameLengthForDatabase getMergeTreeSetting getOSKernelVersion getServerPort
    getServerSetting getSetting getSettingOrDefault globalVariable hasThreadFuzzer hostName initialQueryID initialQueryStartTime initial_query_id
    initial_query_start_time partitionID queryID query_id revision serverUUID session_user shardCount shardNum showCertificate tcpPort transactionID
    transactionLatestSnapshot transactionOldestSnapshot uptime user zookeeperSessionUptime`,
  // They wait, fail on purpose, write the log, read the process, or are internal.
  effects: `
    __actionName __applyFilter __bitBoolMaskAnd __bitBoolMaskOr __bitSwapLastTwo __bitWrapperFunc __getScalar __patchPartitionID __scalarSubqueryResult
    __toYearCalendarOnly addressToLine addressToLineWithInlines addressToSymbol aggThrow demangle flameGraph fuzzQuery isMergeTreePartCoveredBy logTrace
    mergeTreePartInfo nothing nothingNull nothingUInt64 sleep sleepEachRow tid validateNestedArraySizes`,
});

/** Functions that stand in the place of a table and make their rows themselves. */
export const ALLOWED_TABLES = names({
  made: 'generate_series generateSeries null numbers numbers_mt primes SQLStandardValues values view zeros zeros_mt',
});

/** Known and refused in the place of a table. */
export const REFUSED_TABLES = names({
  elsewhere: `
    arrowstream azureBlobStorage azureBlobStorageCluster cluster clusterAllReplicas cosn deltaLake deltaLakeAzure deltaLakeAzureCluster deltaLakeCluster
    deltaLakeLocal deltaLakeS3 deltaLakeS3Cluster dictionary eval executable file fileCluster filesystem format fuzzJSON fuzzQuery gcs generateRandom hdfs
    hdfsCluster hudi hudiCluster iceberg icebergAzure icebergAzureCluster icebergCluster icebergHDFS icebergHDFSCluster icebergLocal icebergLocalCluster
    icebergS3 icebergS3Cluster input jdbc loop merge mergeTreeAnalyzeIndexes mergeTreeAnalyzeIndexesUUID mergeTreeIndex mergeTreeProjection mergeTreeTextIndex
    mongodb mysql odbc oss paimon paimonAzure paimonAzureCluster paimonCluster paimonHDFS paimonHDFSCluster paimonLocal paimonS3 paimonS3Cluster postgresql
    prometheusQuery prometheusQueryRange redis remote remoteSecure s3 s3Cluster sqlite timeSeriesData timeSeriesMetrics timeSeriesSamples timeSeriesSelector
    timeSeriesTags url urlCluster viewExplain viewIfPermitted ytsaurus`,
});

/** Functions whose first of several arguments may be another function's name: `arrayMap(upper, …)`. */
export const HIGHER_ORDER = names({
  all: `
    arrayAll arrayAvg arrayBottomK arrayCompact arrayCount arrayCumSum arrayCumSumNonNegative arrayDifference arrayExists arrayFill arrayFilter arrayFirst
    arrayFirstIndex arrayFirstOrNull arrayFold arrayLast arrayLastIndex arrayLastOrNull arrayMap arrayMax arrayMin arrayPartialReverseSort arrayPartialSort
    arrayProduct arrayReverseFill arrayReverseSort arrayReverseSplit arraySort arraySplit arraySum arrayTopK mapAll mapApply mapExists mapFilter
    mapPartialReverseSort mapPartialSort mapReverseSort mapSort`,
});

/** What an aggregate function's name may end with: `sumIf`, `uniqArrayState`. */
const COMBINATORS =
  /(?:ArgMax|ArgMin|Array|Distinct|ForEach|If|Map|Merge|Null|OrDefault|OrNull|Resample|SimpleState|State|Tuple)$/i;
const AGGREGATES = names({ all: AGGREGATE_NAMES });

/** Whether a query may call this function. */
export function mayCall(name: string): boolean {
  if (ALLOWED.has(name.toLowerCase())) return true;
  if (REFUSED.has(name.toLowerCase())) return false;
  for (let base = name; COMBINATORS.test(base); ) {
    base = base.replace(COMBINATORS, '');
    if (AGGREGATES.has(base.toLowerCase())) return true;
  }
  return false;
}

/** @returns the names in lower case */
function names(groups: Readonly<Record<string, string>>): ReadonlySet<string> {
  return new Set(Object.values(groups).flatMap((text) => text.toLowerCase().trim().split(/\s+/)));
}
